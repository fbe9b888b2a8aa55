use super::*;
use crate::Latencies;
use crate::record::labels;

/// Three rounds of a phase, with so much CPU time in each.
fn cell(target: &str, phase: &str, tool: &str, seconds: [f64; 3], cpu_seconds: f64) -> Vec<Sample> {
    let sample = |(round, real_seconds)| Sample {
        round,
        labels: labels([("target", target), ("phase", phase), ("tool", tool)]),
        real_seconds,
        user_seconds: cpu_seconds,
        run_delay_seconds: Some(0.0),
        ..Sample::default()
    };
    (1..).zip(seconds).map(sample).collect()
}

fn texts(samples: &[Sample], concern: Concern) -> Vec<String> {
    let all = advise(samples).into_iter();
    all.filter(|advice| advice.concern == concern)
        .map(|advice| advice.text)
        .collect()
}

#[test]
fn unpacking_that_costs_much_more_than_reading_is_reported() {
    let read = cell("nfs", "read", "stook", [1.0, 1.1, 0.9], 0.1);
    let untar = |seconds| [read.clone(), cell("nfs", "untar", "system", seconds, 0.1)].concat();
    assert_eq!(
        texts(&untar([150.0, 151.0, 149.0]), Concern::KeepTarred),
        [
            "on `nfs`, unpacking costs 150 x more than reading the archive in place: keep this data set tarred"
        ]
    );
    assert_eq!(
        texts(&untar([15.0, 15.0, 15.0]), Concern::KeepTarred),
        [""; 0]
    );
    // The median says 30 x; the interval does not.
    assert_eq!(
        texts(&untar([3.0, 30.0, 31.0]), Concern::KeepTarred),
        [""; 0]
    );
    let warnings = texts(&untar([150.0; 3]), Concern::Warning);
    assert!(
        warnings.len() == 1 && warnings[0].contains("perhaps from memory"),
        "{warnings:?}"
    );
    let all = advise(&untar([150.0; 3]));
    let remedies: Vec<_> = all.into_iter().filter_map(|advice| advice.remedy).collect();
    assert_eq!(remedies, [Remedy::DropCaches]);
    let mut cold = untar([150.0; 3]);
    for sample in &mut cold {
        sample
            .proof
            .insert("caches_dropped".to_owned(), true.into());
    }
    assert_eq!(texts(&cold, Concern::Warning), [""; 0]);
    let fast = cell("nfs", "untar", "stook", [10.0, 10.1, 9.9], 0.1);
    let both = texts(&[untar([150.0; 3]), fast].concat(), Concern::KeepTarred);
    assert!(
        both[0].contains("reading the archive in place (10 x with stook): "),
        "{both:?}"
    );
    // Two rounds say nothing about how sure it is.
    let few: Vec<Sample> = untar([150.0; 3])
        .into_iter()
        .filter(|sample| sample.round < 3)
        .collect();
    assert_eq!(texts(&few, Concern::KeepTarred), [""; 0]);
}

#[test]
fn a_slow_target_is_compared_with_the_fastest() {
    let stat = |target, seconds| cell(target, "stat", "system", seconds, 0.1);
    let samples = [
        stat("nvme", [0.1, 0.11, 0.1]),
        stat("nfs", [4.0, 4.1, 3.9]),
        stat("disk", [0.2, 0.2, 0.2]),
    ]
    .concat();
    assert_eq!(
        texts(&samples, Concern::SlowTarget),
        [
            "on `nfs`, stat of all files takes 40 x as long as on `nvme`: programs that compare trees, such as backups, \
             feel this most"
        ]
    );
    let overlapping = [stat("a", [0.1, 0.1, 3.0]), stat("b", [1.0, 0.2, 1.1])].concat();
    assert_eq!(texts(&overlapping, Concern::SlowTarget), [""; 0]);
}

#[test]
fn more_workers_are_advised_where_tools_wait_and_stook_waits_less() {
    let both = |cpu, stook| {
        let system = cell("nfs", "untar", "system", [10.0, 10.1, 9.9], cpu);
        [system, cell("nfs", "untar", "stook", stook, 0.2)].concat()
    };
    let fast = [1.0, 1.1, 0.9];
    assert_eq!(
        texts(&both(0.3, fast), Concern::MoreWorkers),
        [
            "on `nfs`, more workers help: untar is blocked 97 % of the time, and stook is 10 x faster than tar"
        ]
    );
    assert_eq!(texts(&both(9.0, fast), Concern::MoreWorkers), [""; 0]);
    // Waiting for a processor, or for nobody knows what, is no reason.
    for (waited, stook) in [
        (Some(7.0), fast),
        (None, fast),
        (Some(7.0), [10.1, 10.2, 10.3]),
    ] {
        let mut samples = both(0.3, stook);
        for sample in &mut samples {
            sample.run_delay_seconds = waited;
        }
        for concern in [Concern::MoreWorkers, Concern::StorageLimit] {
            assert_eq!(texts(&samples, concern), [""; 0]);
        }
    }
    assert_eq!(
        texts(&both(0.3, [9.0, 9.5, 10.0]), Concern::MoreWorkers),
        [""; 0]
    );
    assert_eq!(
        texts(&both(0.3, [10.1, 10.2, 10.3]), Concern::StorageLimit),
        ["on `nfs`, all tools wait, and more workers do not help: untar (97 % blocked)"]
    );
    assert_eq!(
        texts(&both(0.3, [2.0, 10.0, 12.0]), Concern::StorageLimit),
        [""; 0]
    );
    // Tar waits; stook works.
    let system = cell("nfs", "untar", "system", [10.0; 3], 0.3);
    let works = cell("nfs", "untar", "stook", [10.0; 3], 9.0);
    assert_eq!(
        texts(&[system, works].concat(), Concern::StorageLimit),
        [""; 0]
    );
    // Of packing only one of them waits for the disk.
    let packing = ["system", "stook"].map(|tool| cell("nfs", "tar", tool, [10.0; 3], 0.3));
    assert_eq!(texts(&packing.concat(), Concern::StorageLimit), [""; 0]);
}

/// One sample of `single` with 990 short operations and 20 long ones.
fn with_tail(name: &str, long_nanoseconds: u64) -> Vec<Sample> {
    let mut latencies = Latencies::default();
    (0..990).for_each(|_| latencies.add(20_000));
    (0..20).for_each(|_| latencies.add(long_nanoseconds));
    let mut samples = cell("nfs", "untar", "single", [1.0; 3], 0.5);
    samples[0].latencies.insert(name.to_owned(), latencies);
    samples
}

#[test]
fn a_tail_is_reported_if_it_is_long_and_felt() {
    let found = texts(&with_tail("create", 12_000_000), Concern::LongTail);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("on `nfs`, one `create` of untar in a hundred takes 12.0 ms or more"),
        "{found:?}"
    );
    assert_eq!(
        texts(&with_tail("create", 900_000), Concern::LongTail),
        [""; 0]
    );
    assert_eq!(
        texts(&with_tail("write", 12_000_000), Concern::LongTail),
        [""; 0]
    );
}

#[test]
fn what_is_short_or_uneven_raises_a_warning() {
    let samples = [
        cell("a", "find", "system", [0.005, 0.005, 0.005], 0.01),
        cell("a", "find", "stook", [0.005, 0.005, 0.005], 0.01),
        cell("a", "untar", "system", [1.0, 2.0, 3.0], 0.01),
        cell("a", "untar", "stook", [1.0, 1.0, 1.1], 0.01),
    ];
    let found = advise(&samples.concat()).into_iter();
    let found: Vec<_> = found
        .filter(|advice| advice.concern == Concern::Warning)
        .map(|advice| (advice.text, advice.remedy))
        .collect();
    let expected = [
        (
            "on `a`, these took less than 10 ms, too short to judge: find",
            Remedy::MeasureMoreFiles,
        ),
        (
            "on `a`, the times of rounds differ by more than a fifth: untar with system",
            Remedy::MeasureMoreRounds,
        ),
    ];
    assert_eq!(
        found,
        expected.map(|(text, remedy)| (text.to_owned(), Some(remedy)))
    );
    assert_eq!(advise(&[]), []);
}
