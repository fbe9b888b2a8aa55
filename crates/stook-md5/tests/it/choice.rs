//! Choosing a kernel.

use stook_md5::{Kernel, select};

use crate::each_kernel::each_kernel;

#[test]
fn a_selected_kernel_is_the_current_one() {
    each_kernel(|kernel| assert_eq!(Kernel::current(), kernel));
}

#[test]
fn kernels_have_names() {
    for name in ["avx512", "avx2", "portable", "scalar"] {
        let kernel: Kernel = name.parse().unwrap();
        assert_eq!(kernel.to_string(), name);
    }
    let error = "AVX2".parse::<Kernel>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kernels are avx512, avx2, portable, scalar"
    );
}

#[test]
fn what_the_processor_lacks_is_refused() {
    let has = |kernel| Kernel::available().any(|other| other == kernel);
    assert!(has(Kernel::Portable) && has(Kernel::Scalar));
    for kernel in [Kernel::Avx512, Kernel::Avx2] {
        if has(kernel) {
            stook_testkit::skip!("this processor has {kernel}");
            continue;
        }
        let error = select(kernel).unwrap_err();
        assert_eq!(error.to_string(), format!("this processor has no {kernel}"));
    }
}
