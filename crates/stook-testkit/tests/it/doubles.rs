//! The doubles of `hsi` and `globus`, called as scripts call the programs.

use std::process::{Command, Output};

use stook_testkit::TempDir;
use stook_testkit::doubles::{Double, Trouble};

fn hsi(double: &Double, folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(double.program());
    command.current_dir(folder.path()).args(arguments);
    command.output().unwrap()
}

#[test]
fn what_zstash_asks_of_hsi_is_understood() {
    let (double, folder) = (Double::hsi(), TempDir::new().unwrap());
    std::fs::write(folder.join("000000.tar"), b"volume").unwrap();
    for arguments in [
        &["-q", "mkdir -p /home/a/run"][..],
        &["-q", "cd /home/a/run; ls -l"],
        &["-q", "cd /home/a/run; put 000000.tar"],
        &["-q", "cd /home/a/run; get 000000.tar"],
        &["chgrp", "-R", "e3sm", "/home/a/run"],
    ] {
        let output = hsi(&double, &folder, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    }
    assert_eq!(double.content("/home/a/run/000000.tar").unwrap(), b"volume");
    let list = hsi(&double, &folder, &["-P", "ls -lN /home/a/run"]);
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(
        list.starts_with("-rw-r-----") && list.ends_with(" /home/a/run/000000.tar\n"),
        "{list}"
    );
    assert_eq!(double.count("put 000000.tar"), 1);
}

#[test]
fn errors_of_hsi_are_told_with_odd_codes_or_with_none() {
    let (double, folder) = (Double::hsi(), TempDir::new().unwrap());
    let get = || hsi(&double, &folder, &["-q", "get /no/such"]);
    let output = get();
    assert_eq!(output.status.code(), Some(72));
    assert!(String::from_utf8_lossy(&output.stderr).contains("HPSS_ENOENT"));
    double.set(&Trouble {
        exits_zero: true,
        ..Trouble::default()
    });
    assert_eq!(get().status.code(), Some(0));
    double.set(&Trouble::default());
    for wrong in ["frobnicate", "get a*", "put -Z x", "get 'a'", "put a : "] {
        let output = hsi(&double, &folder, &["-q", wrong]);
        assert_eq!(output.status.code(), Some(64), "{wrong}: {output:?}");
    }
}

#[test]
fn a_list_is_ordered_by_tape_only_if_it_is_scheduled() {
    let (double, folder) = (Double::hsi(), TempDir::new().unwrap());
    double.set(&Trouble {
        tapes: 2,
        ..Trouble::default()
    });
    hsi(&double, &folder, &["mkdir -p /a"]);
    let names: Vec<String> = (0..6).map(|n| format!("/a/{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        std::fs::write(folder.join(n.to_string()), b"x").unwrap();
        assert!(
            hsi(&double, &folder, &["put", &n.to_string(), ":", name])
                .status
                .success()
        );
    }
    let mounts = |options: &str| {
        let before = double.counters().mounts;
        let list = format!("get {options}<<END\n{}\nEND\n", names.join("\n"));
        std::fs::write(folder.join("list"), list).unwrap();
        assert!(hsi(&double, &folder, &["-q", "in list"]).status.success());
        double.counters().mounts - before
    };
    assert_eq!(mounts(""), 6);
    assert!(mounts("-A ") <= 2);
}

#[test]
fn a_task_of_globus_goes_on_between_calls() {
    let double = Double::globus();
    let ids = [
        "aaaaaaaa-0000-0000-0000-000000000000",
        "bbbbbbbb-0000-0000-0000-000000000000",
    ];
    for id in ids {
        double.add_endpoint(id, None);
    }
    std::fs::write(double.endpoint_path(ids[0], "/a b"), b"bytes").unwrap();
    let globus = |arguments: &[&str], input: &str| {
        let batch = TempDir::new().unwrap();
        std::fs::write(batch.join("batch"), input).unwrap();
        let mut command = Command::new(double.program());
        let stdin = std::fs::File::open(batch.join("batch")).unwrap();
        let output = command
            .args(arguments)
            .args(["-F", "json"])
            .stdin(stdin)
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let submit = [
        "transfer", ids[0], ids[1], "--batch", "-", "--label", "a label",
    ];
    assert_eq!(globus(&submit, "-rf /x\n").0, 2);
    assert_eq!(globus(&submit, "# nothing\n").0, 1);
    assert_eq!(globus(&submit, "'/a b' /c/d\n").0, 0);
    assert_eq!(double.task_states(), ["ACTIVE"]);
    let list = ["task", "list", "--filter-status", "ACTIVE"];
    assert!(globus(&list, "").1.contains("a label"));
    assert!(!globus(&list, "").1.contains("a label"));
    assert_eq!(double.task_states(), ["SUCCEEDED"]);
    assert_eq!(
        std::fs::read(double.endpoint_path(ids[1], "/c/d")).unwrap(),
        b"bytes"
    );
    assert_eq!(globus(&["ls", &format!("{}:/none", ids[1])], "").0, 1);
    double.set(&Trouble {
        login_operations: Some(0),
        ..Trouble::default()
    });
    assert_eq!(globus(&list, "").0, 4);
}
