//! Going through a tree and its copy, side by side: what is entered, selected, counted and reported.

use std::io;
use std::sync::Arc;

use stook_sys::{Directory, FileId, FileKind, Links, is_mount_point};
use stook_timers::scope;

use super::context::{CopyContext, StepCounts};
use super::fault::{At as _, Fault, Side};
use super::options::OPEN_FILES;
use super::roots::Single;
use super::state::{DirectoryState, Pair, PairNode, reach};
use super::visitor::{Entrance, Entry, Later, Outcome, PairVisitor};
use crate::Reason;
use crate::names::{Name, Names};
use crate::traverse::{
    At, Entered, FoundOf, HandleBudget, Part, Task, TasksOf, Traverse, TraverseOptions, traverse,
};

pub(super) struct PairWalk<'r, 't> {
    pub(super) context: &'r CopyContext<'r>,
    pub(super) visitor: &'r dyn PairVisitor<'t>,
    /// The root of the copy, which is no part of the tree.
    pub(super) leave_out: Option<FileId>,
}

impl<'t> Traverse<'t> for PairWalk<'_, 't> {
    type Open = Pair;
    type Data = DirectoryState;
    type Collected = ();
    type Step = StepCounts;

    const STEP: usize = 16;

    fn is_interrupted(&self) -> bool {
        self.context.is_stopped()
    }

    fn enter(&self, waiting: &Later<'t>) -> Option<Entered<Pair, DirectoryState>> {
        let Later {
            node: parent, name, ..
        } = waiting;
        let may_have_selected = self.is_entered(parent, name)?;
        match self.enter_pair(parent, name) {
            Ok(entered) => Some(Entered {
                is_listed: entered.is_listed && may_have_selected,
                ..entered
            }),
            Err(fault) => {
                self.context.fail(parent, name, fault);
                None
            }
        }
    }

    fn list_failed(&self, node: &PairNode<'t>, error: io::Error) -> bool {
        let fault = Fault::new(Side::Source, "list", error);
        self.context.fail(node, b"", fault);
        true
    }

    fn begin_names(
        &self,
        _node: &PairNode<'t>,
        _open: &Pair,
        _names: &Names,
        _part: Part,
    ) -> Option<()> {
        Some(())
    }

    fn order(&self, names: &mut Names) -> usize {
        names.sort_by_inode()
    }

    fn timed(&self, run: impl FnOnce()) {
        let _scope = scope!("files");
        run();
    }

    fn begin_step(&self, _names: usize) -> StepCounts {
        StepCounts::default()
    }

    fn entry(
        &self,
        at: &At<'_, 't, Self>,
        name: &Name,
        counts: &mut StepCounts,
        found: &mut FoundOf<'t, Self>,
    ) {
        let (node, source) = (at.node, &at.open.source);
        let bytes = name.place.of(at.bytes);
        let kind = match name.kind {
            Some(kind) => Ok(kind),
            None => source
                .metadata(bytes, Links::Refuse)
                .map(|metadata| metadata.kind),
        };
        let kind = match kind.at(Side::Source, "look at") {
            Ok(kind) => kind,
            Err(fault) => return self.context.fail(node, bytes, fault),
        };
        let entry = Entry {
            node,
            source,
            copy: at.open.copy.as_ref(),
            name: bytes,
            new_name: bytes,
            kind,
            may_wait: true,
        };
        self.visit(&entry, name.inode, counts, found);
    }

    fn end_step(&self, _at: &At<'_, 't, Self>, counts: StepCounts) {
        self.context.count(&counts);
    }

    fn late_entry(&self, waiting: &Later<'t>, found: &mut FoundOf<'t, Self>) {
        let mut counts = StepCounts::default();
        if let Err(fault) = self.visit_late(waiting, &mut counts, found) {
            self.context.fail(&waiting.node, &waiting.name, fault);
        }
        self.context.count(&counts);
    }

    fn leave(
        &self,
        node: PairNode<'t>,
        open: Option<Pair>,
        _tasks: &TasksOf<'t, Self>,
    ) -> Option<Arc<PairNode<'t>>> {
        if let Err(fault) = self.visitor.leave(&node, open.and_then(|pair| pair.copy)) {
            self.context.fail(&node, b"", fault);
        }
        node.close().0
    }
}

impl<'t> PairWalk<'_, 't> {
    /// Goes through two trees.
    pub(super) fn over_trees(
        &self,
        name: &'static str,
        pair: Pair,
        state: DirectoryState,
        budget: &'t HandleBudget,
    ) {
        let root = Arc::new(PairNode::root(pair, b"", state));
        let options = TraverseOptions {
            name,
            jobs: self.context.options.jobs,
            open_files: OPEN_FILES,
        };
        traverse(self, budget, &options, [Task::Rest(root)]);
    }

    /// Visits a single file; the state is that of the directories that hold it and its copy.
    pub(super) fn over_single(&self, pair: Pair, state: DirectoryState, single: &Single) {
        let context = self.context;
        if context.has_patterns && !context.options.filter.selects(&single.name) {
            return;
        }
        let node = Arc::new(PairNode::root(pair, b"", state));
        if let Some(pair) = node.open() {
            let entry = Entry {
                node: &node,
                source: &pair.source,
                copy: pair.copy.as_ref(),
                name: &single.name,
                new_name: &single.new_name,
                kind: single.kind,
                may_wait: false,
            };
            let mut counts = StepCounts::default();
            match self.visitor.entry(&entry, &mut Vec::new()) {
                Ok(outcome) => self.take_account(&entry, outcome, &mut counts),
                Err(fault) => context.fail(&node, &single.name, fault),
            }
            context.count(&counts);
        }
    }

    /// Returns whether a directory is to be entered, and whether anything in it may be selected.
    fn is_entered(&self, parent: &PairNode<'_>, name: &[u8]) -> Option<bool> {
        if !self.context.has_patterns {
            return Some(true);
        }
        let (path, filter) = (parent.path(name), &self.context.options.filter);
        let is_listed = !filter.prunes(&path);
        (is_listed || filter.selects(&path)).then_some(is_listed)
    }

    /// Opens a directory and gets its copy ready.
    fn enter_pair(
        &self,
        parent: &PairNode<'t>,
        name: &[u8],
    ) -> Result<Entered<Pair, DirectoryState>, Fault> {
        let (source, is_listed) = self.open(parent, name).at(Side::Source, "open")?;
        let metadata = source.own_metadata().at(Side::Source, "look at")?;
        if self.leave_out == Some(metadata.identity()) {
            return Err(Fault::because("copy", Reason::IsTheCopy));
        }
        let above = reach(parent, Side::Copy)?;
        let entrance = Entrance {
            parent,
            copy: above.as_deref(),
            name,
        };
        let (copy, data) = self.visitor.enter(&entrance, &source, metadata)?;
        drop(above);
        if !is_listed {
            let why = "something else is mounted there";
            self.context.skip(parent, name, why);
        }
        Ok(Entered {
            open: Pair { source, copy },
            data,
            is_listed,
        })
    }

    /// Opens a directory; with it comes whether what is in it belongs to the tree.
    fn open(&self, parent: &PairNode<'_>, name: &[u8]) -> io::Result<(Directory, bool)> {
        let _scope = scope!("open");
        let (base, way) = parent.nearest(name);
        let base = &base.source;
        if !self.context.options.one_file_system {
            return Ok((base.open_beneath(&way)?, true));
        }
        match base.open_on_same_mount(&way) {
            Err(error) if is_mount_point(&error) => Ok((base.open_beneath(&way)?, false)),
            other => Ok((other?, true)),
        }
    }

    fn visit_late(
        &self,
        waiting: &Later<'t>,
        counts: &mut StepCounts,
        found: &mut FoundOf<'t, Self>,
    ) -> Result<(), Fault> {
        let Later { node, name, .. } = waiting;
        let Some(source) = reach(node, Side::Source)? else {
            return Ok(());
        };
        let copy = reach(node, Side::Copy)?;
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
        self.visit(&entry, 0, counts, found);
        Ok(())
    }

    fn visit(
        &self,
        entry: &Entry<'_, 't>,
        inode: u64,
        counts: &mut StepCounts,
        found: &mut FoundOf<'t, Self>,
    ) {
        if entry.kind == FileKind::Directory {
            return found.add_directory(inode, entry.name);
        }
        let is_left = self.context.has_patterns && {
            let path = entry.node.path(entry.name);
            !self.context.options.filter.selects(&path)
        };
        if is_left {
            return;
        }
        match self.visitor.entry(entry, &mut found.later) {
            Ok(Outcome::Directory) => found.add_directory(inode, entry.name),
            Ok(outcome) => {
                entry.node.data.use_it();
                self.take_account(entry, outcome, counts);
            }
            Err(fault) => self.context.fail(entry.node, entry.name, fault),
        }
    }

    fn take_account(&self, entry: &Entry<'_, 't>, outcome: Outcome, counts: &mut StepCounts) {
        match outcome {
            Outcome::Done { bytes, is_reported } => {
                counts.entries += 1;
                counts.bytes += bytes;
                counts.unreported_bytes += if is_reported { 0 } else { bytes };
            }
            Outcome::Unchanged => counts.unchanged += 1,
            Outcome::Skipped(why) => self.context.skip(entry.node, entry.name, why),
            Outcome::Directory | Outcome::Later => {}
        }
    }
}
