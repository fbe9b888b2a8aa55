//! What an operation tells while it runs.

/// Hears of progress, and may end an operation. Called every few thousand records at most.
pub trait Observer: Sync {
    /// A phase of so many bytes begins.
    fn phase(&self, _name: &'static str, _bytes: u64) {}

    /// So many more records and bytes of the file are done.
    fn advanced(&self, _records: u64, _bytes: u64) {}

    /// Returns true once the operation should end early, and from then on.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Hears nothing.
impl Observer for () {}

/// Bytes between two words to the observer.
const STEP: u64 = 4 << 20;

/// Counts records and tells of them in batches.
pub(crate) struct Progress<'a> {
    observer: &'a dyn Observer,
    position: u64,
    records: u64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(observer: &'a dyn Observer, position: u64) -> Self {
        Self {
            observer,
            position,
            records: 0,
        }
    }

    /// So many more records lie before this position; returns true if the caller wants an end.
    #[inline]
    pub(crate) fn reach(&mut self, position: u64, records: u64) -> bool {
        self.records += records;
        position.saturating_sub(self.position) >= STEP && self.tell(position)
    }

    /// Tells what is not told yet.
    pub(crate) fn tell(&mut self, position: u64) -> bool {
        self.observer
            .advanced(self.records, position.saturating_sub(self.position));
        (self.position, self.records) = (position, 0);
        self.observer.is_interrupted()
    }
}
