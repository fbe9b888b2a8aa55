use super::*;
use crate::testing::Quiet;
use stook_testkit::{TempDir, tree};

#[test]
fn what_runs_leave_behind_goes_when_space_is_short() {
    let (folder, quiet) = (TempDir::new().unwrap(), Quiet::default());
    tree! { "a/x" => file(b"1"), "b/x" => file(b"22"), "c/y" => file(b"") }
        .write(folder.path())
        .unwrap();
    let texts = [
        "copier:create=cp -a {source}/. {archive}",
        "copier:update=cp -a {source}/. {archive}",
        "copier:extract=cp -a {archive}/. {into}",
    ];
    let options = UpdateOptions {
        tools: Tool::parse(&texts.map(ToOwned::to_owned)).unwrap(),
        stook: "stook".into(),
        directories: ["a", "b", "c"].map(|name| folder.join(name)),
        repeats: 1,
        work: None,
        placement: Placement::Over,
        caches: Caches::Hot,
        finish: Finish::Ended,
        store: None,
    };
    let study = UpdateStudy::prepare(options, "2026-11-21T10:00:00Z", &()).unwrap();
    for (least, left) in [(0, 6), (u64::MAX, 1)] {
        let work = ScratchDirectory::make(folder.path()).unwrap();
        let mut rounds = Rounds::new(&study, &work, &quiet).unwrap();
        rounds.left_behind.least.bytes = least;
        rounds.left_behind.least.inodes = None;
        assert_eq!(rounds.run().unwrap(), 0);
        assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), left);
    }
    assert_eq!(quiet.warnings.lock().unwrap().len(), 1);
}
