//! An observer that remembers what it is told, and can do something when a phase begins.
//!
//! `phase("archive")` comes after the survey and before the first read, so what is done there is, to the
//! archiver, a tree that changes under its hands: every time at the same point.

use std::sync::Mutex;

use stook_archive::{BaseObserver, Damage, Failure, IndexDamage, Observer, SkipReason};

type Action<'a> = Box<dyn FnOnce() + Send + 'a>;

#[derive(Default)]
pub(crate) struct Recorder<'a> {
    at: Mutex<Option<(&'static str, Action<'a>)>>,
    failures: Mutex<Vec<Failure>>,
    damages: Mutex<Vec<Damage>>,
    index_damages: Mutex<Vec<IndexDamage>>,
    skipped: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Runs `action` when the phase begins.
    pub(crate) fn at_phase(phase: &'static str, action: impl FnOnce() + Send + 'a) -> Self {
        let recorder = Self::default();
        *recorder.at.lock().unwrap() = Some((phase, Box::new(action)));
        recorder
    }

    pub(crate) fn failures(&self) -> Vec<Failure> {
        let mut failures = self.failures.lock().unwrap().clone();
        failures.sort_by(|a, b| a.path.cmp(&b.path));
        failures
    }

    /// Paths that failed, sorted.
    pub(crate) fn failed_paths(&self) -> Vec<String> {
        let paths = self.failures().into_iter();
        paths
            .map(|failure| String::from_utf8(failure.path).unwrap())
            .collect()
    }

    /// Each failure as the user reads it.
    pub(crate) fn failure_texts(&self) -> Vec<String> {
        self.failures().iter().map(ToString::to_string).collect()
    }

    /// Each damage as the user reads it, those of the index first.
    pub(crate) fn damage_texts(&self) -> Vec<String> {
        let index_damages = self.index_damages.lock().unwrap();
        let damages = self.damages.lock().unwrap();
        let index_damages = index_damages.iter().map(ToString::to_string);
        index_damages
            .chain(damages.iter().map(ToString::to_string))
            .collect()
    }

    /// Each skipped entry as `path: why`.
    pub(crate) fn skipped(&self) -> Vec<String> {
        self.skipped.lock().unwrap().clone()
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }
}

impl BaseObserver for Recorder<'_> {
    type Failure = Failure;

    fn failed(&self, failure: &Failure) {
        self.failures.lock().unwrap().push(failure.clone());
    }
}

impl Observer for Recorder<'_> {
    fn phase(&self, name: &'static str, _entries: Option<u64>, _bytes: Option<u64>) {
        let action = {
            let mut at = self.at.lock().unwrap();
            if at.as_ref().is_some_and(|(phase, _)| *phase == name) {
                at.take()
            } else {
                None
            }
        };
        if let Some((_, action)) = action {
            action();
        }
    }

    fn skipped(&self, path: &[u8], reason: SkipReason) {
        let text = format!("{}: {reason}", String::from_utf8_lossy(path));
        self.skipped.lock().unwrap().push(text);
    }

    fn damaged(&self, damage: &Damage) {
        self.damages.lock().unwrap().push(damage.clone());
    }

    fn index_damaged(&self, damage: &IndexDamage) {
        self.index_damages.lock().unwrap().push(damage.clone());
    }

    fn noted(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}
