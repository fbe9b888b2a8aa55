//! One round over a tree and its copy, side by side: which names there are, and which worker takes them.
//!
//! A small directory is the work of one worker. The names of a large one are split into chunks, and large files are
//! tasks of their own. The youngest task is taken first, so that few directories are begun and not ended.

use std::io;
use std::sync::Arc;

use stook_pool::{Tasks, WorkerPool, advance};
use stook_sys::{Directory, FileId, FileKind, Links, is_mount_point};
use stook_timers::scope;

use super::OPEN_FILES;
use super::errand::{At, Errand, Fault, Side, Tally};
use super::making::Facts;
use super::node::{Node, Pair};
use super::places::Single;
use super::task::{CHUNK, Chunk, Found, Later, Shared, Task, sort_out};
use super::work::{Entrance, Entry, Outcome, Work};
use crate::held::Holder;
use crate::names::{Name, Names};

/// What it takes to go on in a directory.
struct Entered<'h> {
    node: Arc<Node<'h>>,
    pair: Pair,
    /// False if what is in it does not belong to the tree.
    is_within: bool,
}

/// Names read at a time. A directory of more is read in parts.
const MOST_NAMES: usize = 1 << 20;

/// Entries between two looks at whether to stop.
const STEP: usize = 16;

pub(super) struct Round<'r, 'h> {
    pub(super) name: &'static str,
    pub(super) errand: &'r Errand<'r>,
    pub(super) work: &'r dyn Work<'h>,
    pub(super) holder: &'h Holder,
    /// The root of the copy, which is no part of the tree.
    pub(super) leave_out: Option<FileId>,
}

impl<'h> Round<'_, 'h> {
    /// Goes over two trees.
    pub(super) fn over_trees(&self, pair: Pair, facts: Facts) {
        let root = Arc::new(Node::root(pair, facts));
        let most = self.holder.most_workers(OPEN_FILES);
        let pool = WorkerPool::new(self.name, self.errand.options.jobs).at_most(most);
        pool.recursive([Task::Rest(root)], |task, tasks| match task {
            Task::Directory(later) => self.run_directory(later, tasks),
            Task::Rest(node) => Names::with(|names| self.go_through(node, None, names, tasks)),
            Task::Chunk(chunk) => self.run_chunk(chunk, tasks),
            Task::Entry(later) => self.run_entry(later, tasks),
        });
    }

    /// Deals with a single file; the facts are those of the directories that hold it and its copy.
    pub(super) fn over_single(&self, pair: Pair, facts: Facts, single: &Single) {
        let errand = self.errand;
        if errand.has_patterns && !errand.options.filter.selects(&single.name) {
            return;
        }
        let node = Arc::new(Node::root(pair, facts));
        if let Some(pair) = node.held() {
            let entry = Entry {
                node: &node,
                source: &pair.source,
                copy: pair.copy.as_ref(),
                name: &single.name,
                new_name: &single.new_name,
                kind: single.kind,
                may_wait: false,
            };
            let mut tally = Tally::default();
            match self.work.entry(&entry, &mut Vec::new()) {
                Ok(outcome) => self.take_account(&entry, outcome, &mut tally),
                Err(fault) => self.errand.fail(&node, &single.name, fault),
            }
            self.errand.count(&tally);
        }
    }

    fn run_directory(&self, later: Later<'h>, tasks: &Tasks<Task<'h>>) {
        let Later { node: parent, name } = later;
        if self.errand.is_stopped() {
            parent.leave_partial();
        } else if let Some(is_listed) = self.is_entered(&parent, &name) {
            match self.enter(&parent, &name) {
                Ok(Entered {
                    node,
                    pair,
                    is_within,
                }) => {
                    if is_listed && is_within {
                        Names::with(|names| self.go_through(node, Some(pair), names, tasks));
                    } else {
                        self.leave(node, pair.copy);
                    }
                }
                Err(fault) => self.errand.fail(&parent, &name, fault),
            }
        }
        self.leave(parent, None);
    }

    /// Returns whether a directory is to be entered, and whether anything in it may be selected.
    fn is_entered(&self, parent: &Node<'_>, name: &[u8]) -> Option<bool> {
        if !self.errand.has_patterns {
            return Some(true);
        }
        let (path, filter) = (parent.way_below_root(name), &self.errand.options.filter);
        let is_listed = !filter.prunes(&path);
        (is_listed || filter.selects(&path)).then_some(is_listed)
    }

    /// Opens a directory and gets its copy ready.
    fn enter(&self, parent: &Arc<Node<'h>>, name: &[u8]) -> Result<Entered<'h>, Fault> {
        let (source, is_within) = self.open(parent, name).at(Side::Source, "open")?;
        let metadata = source.own_metadata().at(Side::Source, "look at")?;
        if self.leave_out == Some(metadata.identity()) {
            return Err(Fault::because("copy", "it is the copy itself"));
        }
        let above = parent.reach(Side::Copy).at(Side::Copy, "open")?;
        let entrance = Entrance {
            parent,
            copy: above.as_deref(),
            name,
        };
        let (copy, facts) = self.work.enter(&entrance, &source, metadata)?;
        drop(above);
        if !is_within {
            let why = "something else is mounted there";
            self.errand.skip(parent, name, why);
        }
        Ok(Entered {
            node: Arc::new(Node::below(parent, name.into(), facts)),
            pair: Pair { source, copy },
            is_within,
        })
    }

    /// Opens a directory; with it comes whether what is in it belongs to the tree.
    fn open(&self, parent: &Node<'_>, name: &[u8]) -> io::Result<(Directory, bool)> {
        let _scope = scope!("open");
        let Some((base, way)) = parent.nearest(Side::Source, name) else {
            unreachable!("the root is open");
        };
        if !self.errand.options.one_file_system {
            return Ok((base.open_beneath(&way)?, true));
        }
        match base.open_on_same_mount(&way) {
            Err(error) if is_mount_point(&error) => Ok((base.open_beneath(&way)?, false)),
            other => Ok((other?, true)),
        }
    }

    /// Goes through the names of a directory that have not been read yet; without a pair, the node holds it open.
    fn go_through(
        &self,
        node: Arc<Node<'h>>,
        mut own: Option<Pair>,
        names: &mut Names,
        tasks: &Tasks<Task<'h>>,
    ) {
        let mut found = Found::default();
        loop {
            if self.errand.is_stopped() {
                node.leave_partial();
                break;
            }
            let Some(pair) = own.as_ref().or(node.held()) else {
                break;
            };
            let more = match names.read_up_to(&pair.source, MOST_NAMES) {
                Ok(more) => more,
                Err(source) => {
                    let fault = Fault::new(Side::Source, "list", source);
                    self.errand.fail(&node, b"", fault);
                    false
                }
            };
            let others = sort_out(names, &mut found.directories);
            if names.all.len() - others > CHUNK {
                match own
                    .take()
                    .map_or(Ok(()), |pair| node.hold(pair, self.holder))
                {
                    Ok(()) => return self.split(node, names, others, more, found, tasks),
                    Err(pair) => own = Some(pair),
                }
            }
            let Some(pair) = own.as_ref().or(node.held()) else {
                break;
            };
            self.work_on(
                &node,
                pair,
                (&names.bytes, &names.all[others..]),
                &mut found,
            );
            if !more {
                break;
            }
        }
        if !found.is_empty() && node.is_worth_holding() {
            own = own.and_then(|pair| node.hold(pair, self.holder).err());
        }
        tasks.extend(found.into_tasks(&node));
        self.leave(node, own.and_then(|pair| pair.copy));
    }

    /// Makes tasks of the names of a large directory, which is held open.
    fn split(
        &self,
        node: Arc<Node<'h>>,
        names: &mut Names,
        others: usize,
        has_more: bool,
        found: Found<'h>,
        tasks: &Tasks<Task<'h>>,
    ) {
        let mut all = std::mem::take(&mut names.all);
        let shared = Arc::new(Shared {
            bytes: std::mem::take(&mut names.bytes),
            names: all.split_off(others),
        });
        let mut new = Vec::new();
        if has_more {
            new.push(Task::Rest(Arc::clone(&node)));
        }
        new.extend(found.into_tasks(&node));
        // Above the others: done before them, so that few directories are split at a time.
        let firsts = (0..shared.names.len()).step_by(CHUNK).rev();
        new.extend(firsts.map(|first| {
            Task::Chunk(Chunk {
                node: Arc::clone(&node),
                names: Arc::clone(&shared),
                first,
            })
        }));
        tasks.extend(new);
        self.leave(node, None);
    }

    fn run_chunk(&self, chunk: Chunk<'h>, tasks: &Tasks<Task<'h>>) {
        let Chunk { node, names, first } = chunk;
        let last = names.names.len().min(first + CHUNK);
        let mut found = Found::default();
        if let Some(pair) = node.held() {
            let part = &names.names[first..last];
            self.work_on(&node, pair, (&names.bytes, part), &mut found);
        }
        drop(names);
        if !found.is_empty() {
            tasks.extend(found.into_tasks(&node));
        }
        self.leave(node, None);
    }

    fn run_entry(&self, later: Later<'h>, tasks: &Tasks<Task<'h>>) {
        let Later { node, name } = later;
        if self.errand.is_stopped() {
            node.leave_partial();
            return self.leave(node, None);
        }
        let mut found = Found::default();
        let mut tally = Tally::default();
        if let Err(fault) = self.deal_with_later(&node, &name, &mut found, &mut tally) {
            self.errand.fail(&node, &name, fault);
        }
        self.errand.count(&tally);
        if !found.is_empty() {
            tasks.extend(found.into_tasks(&node));
        }
        self.leave(node, None);
    }

    fn deal_with_later(
        &self,
        node: &Arc<Node<'h>>,
        name: &[u8],
        found: &mut Found<'h>,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        let Some(source) = node.reach(Side::Source).at(Side::Source, "open")? else {
            return Ok(());
        };
        let copy = node.reach(Side::Copy).at(Side::Copy, "open")?;
        let metadata = source.metadata(name, Links::Refuse);
        let entry = Entry {
            node,
            source: &source,
            copy: copy.as_deref(),
            name,
            new_name: name,
            kind: metadata.at(Side::Source, "look at")?.kind,
            may_wait: false,
        };
        self.deal_with(&entry, found, tally);
        Ok(())
    }

    fn work_on(
        &self,
        node: &Arc<Node<'h>>,
        pair: &Pair,
        (bytes, names): (&[u8], &[Name]),
        found: &mut Found<'h>,
    ) {
        let _scope = scope!("files");
        for step in names.chunks(STEP) {
            if self.errand.is_stopped() {
                node.leave_partial();
                return;
            }
            let mut tally = Tally::default();
            for each in step {
                let name = each.place.of(bytes);
                let kind = match each.kind {
                    Some(kind) => Ok(kind),
                    None => pair
                        .source
                        .metadata(name, Links::Refuse)
                        .map(|metadata| metadata.kind),
                };
                match kind.at(Side::Source, "look at") {
                    Ok(kind) => {
                        let entry = Entry {
                            node,
                            source: &pair.source,
                            copy: pair.copy.as_ref(),
                            name,
                            new_name: name,
                            kind,
                            may_wait: true,
                        };
                        self.deal_with(&entry, found, &mut tally);
                    }
                    Err(fault) => self.errand.fail(node, name, fault),
                }
            }
            self.errand.count(&tally);
            advance(step.len() as u64);
        }
    }

    fn deal_with(&self, entry: &Entry<'_, 'h>, found: &mut Found<'h>, tally: &mut Tally) {
        if entry.kind == FileKind::Directory {
            return found.directories.push(entry.name.into());
        }
        let is_left = self.errand.has_patterns && {
            let path = entry.node.way_below_root(entry.name);
            !self.errand.options.filter.selects(&path)
        };
        if is_left {
            return;
        }
        match self.work.entry(entry, &mut found.later) {
            Ok(Outcome::Directory) => found.directories.push(entry.name.into()),
            Ok(outcome) => {
                entry.node.use_it();
                self.take_account(entry, outcome, tally);
            }
            Err(Fault::Stopped) => entry.node.leave_partial(),
            Err(fault) => self.errand.fail(entry.node, entry.name, fault),
        }
    }

    fn take_account(&self, entry: &Entry<'_, 'h>, outcome: Outcome, tally: &mut Tally) {
        match outcome {
            Outcome::Done { bytes, is_told } => {
                tally.entries += 1;
                tally.bytes += bytes;
                tally.untold_bytes += if is_told { 0 } else { bytes };
            }
            Outcome::Unchanged => tally.unchanged += 1,
            Outcome::Skipped(why) => self.errand.skip(entry.node, entry.name, why),
            Outcome::Directory | Outcome::Later => {}
        }
    }

    /// Leaves a directory; the last one to do so ends it, and leaves the one above.
    fn leave(&self, node: Arc<Node<'h>>, copy: Option<Directory>) {
        let mut leaving = Arc::into_inner(node).map(|node| (node, copy));
        while let Some((node, copy)) = leaving {
            if let Some(parent) = node.parent().filter(|_| node.is_partial()) {
                parent.leave_partial();
            }
            if let Err(fault) = self.work.leave(&node, copy) {
                self.errand.fail(&node, b"", fault);
            }
            let parent = node.close();
            leaving = parent.and_then(Arc::into_inner).map(|node| (node, None));
        }
    }
}
