//! The machine that pickles are programs of, as far as classes and references need it.

use super::PickleError;
use super::input::{Fault, Input};
use super::memo::Memo;
use super::value::{Reference, Value};

/// Values on the stack, and marks: 16 MiB at most.
const MOST: usize = 1 << 20;

/// Pairs that are kept of the pickle of a class.
const MOST_PAIRS: usize = 4096;

/// Strings that are longer name no class.
const LONGEST_NAME: u64 = 4096;

/// Goes through pickles; keeps its memory for the next one.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    pub(super) stack: Vec<Value>,
    /// Heights of the stack at its marks.
    pub(super) marks: Vec<usize>,
    pub(super) memo: Memo,
    pairs: Vec<(Value, Value)>,
    /// Whether pairs are kept: in the pickle of a class.
    keeps_pairs: bool,
}

impl Walker {
    /// Goes through the pickle of the class, and puts `module.name` into the buffer; leaves it empty if it has another form.
    pub(crate) fn class(
        &mut self,
        input: &mut impl Input,
        name: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let value = self.class_pickle(input)?;
        name.clear();
        self.name_of(input, value, name)
    }

    /// Goes through both pickles, and calls `found` for every reference in order; returns their bytes.
    pub(crate) fn references(
        &mut self,
        input: &mut impl Input,
        found: &mut impl FnMut(Reference),
    ) -> Result<u64, Fault> {
        self.class_pickle(input)?;
        self.keeps_pairs = false;
        self.stack.clear();
        self.marks.clear();
        self.run(input, found)?;
        Ok(input.offset())
    }

    fn class_pickle(&mut self, input: &mut impl Input) -> Result<Value, Fault> {
        self.stack.clear();
        self.marks.clear();
        self.memo.clear();
        self.pairs.clear();
        self.keeps_pairs = true;
        self.run(input, &mut |_| {})
    }

    fn run(
        &mut self,
        input: &mut impl Input,
        found: &mut impl FnMut(Reference),
    ) -> Result<Value, Fault> {
        loop {
            let [operation] = input.take()?;
            if operation == b'.' {
                return Ok(self.pop()?);
            }
            self.step(operation, input, found)?;
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: Value) -> Result<(), PickleError> {
        if self.stack.len() >= MOST {
            return Err(PickleError::TooMany);
        }
        self.stack.push(value);
        Ok(())
    }

    /// Takes a value from above the last mark.
    #[inline]
    pub(super) fn pop(&mut self) -> Result<Value, PickleError> {
        self.require(1)?;
        self.stack.pop().ok_or(PickleError::Underflow)
    }

    /// Returns the value on top.
    #[inline]
    pub(super) fn top(&self) -> Result<Value, PickleError> {
        self.require(1)?;
        self.stack.last().copied().ok_or(PickleError::Underflow)
    }

    /// Puts one value in the place of some.
    #[inline]
    pub(super) fn replace(&mut self, count: usize, value: Value) -> Result<(), PickleError> {
        self.require(count)?;
        self.stack.truncate(self.stack.len() - count);
        self.push(value)
    }

    #[inline]
    fn require(&self, count: usize) -> Result<(), PickleError> {
        let base = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() - base >= count {
            true => Ok(()),
            false => Err(PickleError::Underflow),
        }
    }

    pub(super) fn mark(&mut self) -> Result<(), PickleError> {
        if self.marks.len() >= MOST {
            return Err(PickleError::TooMany);
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Takes the last mark away; returns where its values begin.
    pub(super) fn unmark(&mut self) -> Result<usize, PickleError> {
        self.marks.pop().ok_or(PickleError::Underflow)
    }

    /// The values from there on become a tuple.
    pub(super) fn tuple(&mut self, from: usize) -> Result<(), PickleError> {
        let tuple = match self.stack[from..] {
            [first, second, ..] if self.keeps_pairs && self.pairs.len() < MOST_PAIRS => {
                self.pairs.push((first, second));
                Value::Pair(self.pairs.len() as u64 - 1)
            }
            [Value::Eight(number), ..] => Value::EightTuple(number),
            _ => Value::Other,
        };
        self.stack.truncate(from);
        self.push(tuple)
    }

    /// The values from there on are added to the list before them.
    pub(super) fn append(&mut self, from: usize) -> Result<(), PickleError> {
        let values = self.stack.drain(from..);
        let added: Vec<Value> = values.take(3).collect();
        let added = added.into_iter().try_fold(self.top()?, Value::with);
        match added {
            Some(list) => self.replace(1, list),
            None => Ok(()),
        }
    }

    /// Tells of a reference.
    #[inline]
    pub(super) fn refer(&self, value: Value, found: &mut impl FnMut(Reference)) {
        let value = match value {
            Value::Pair(pair) => self.pair(pair).0,
            other => other,
        };
        found(Reference::of(value));
    }

    fn pair(&self, number: u64) -> (Value, Value) {
        let found = usize::try_from(number)
            .ok()
            .and_then(|at| self.pairs.get(at));
        found.copied().unwrap_or((Value::Other, Value::Other))
    }

    /// Adds the text that a value is, or the name of the class that it is.
    pub(super) fn name_of(
        &self,
        input: &mut impl Input,
        value: Value,
        name: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match value {
            Value::Letter(byte) => name.extend(u8::try_from(byte)),
            Value::Eight(number) => name.extend_from_slice(&number.to_be_bytes()),
            Value::Text(span) if span.len() <= LONGEST_NAME => {
                input.copy(span.offset(), span.len(), name)?;
            }
            Value::Quoted(span) if span.len() <= LONGEST_NAME => {
                let mut quoted = Vec::new();
                input.copy(span.offset(), span.len(), &mut quoted)?;
                unquote(&quoted, name);
            }
            Value::Class(span) if span.len() <= LONGEST_NAME => {
                let start = name.len();
                input.copy(span.offset(), span.len(), name)?;
                for byte in name[start..].iter_mut().filter(|byte| **byte == b'\n') {
                    *byte = b'.';
                }
            }
            Value::Pair(pair) => return self.name_of_pair(input, pair, name),
            _ => {}
        }
        Ok(())
    }

    /// A pair is a class and arguments, or a module and a name, or such a pair and arguments.
    fn name_of_pair(
        &self,
        input: &mut impl Input,
        pair: u64,
        name: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let (mut first, mut second) = self.pair(pair);
        if let Value::Pair(inner) = first {
            (first, second) = self.pair(inner);
        }
        // A pair within a pair within a pair names nothing.
        if matches!(first, Value::Pair(_)) {
            return Ok(());
        }
        self.name_of(input, first, name)?;
        if !matches!(first, Value::Class(_) | Value::Other) && !matches!(second, Value::Pair(_)) {
            name.push(b'.');
            self.name_of(input, second, name)?;
        }
        Ok(())
    }

    /// The last values become a tuple.
    #[inline]
    pub(super) fn last_as_tuple(&mut self, count: usize) -> Result<(), PickleError> {
        self.require(count)?;
        self.tuple(self.stack.len() - count)
    }

    /// A class whose module and name are on the stack.
    pub(super) fn class_of_texts(&mut self) -> Result<(), PickleError> {
        match self.keeps_pairs {
            true => self.last_as_tuple(2),
            false => self.replace(2, Value::Other),
        }
    }
}

/// Adds the bytes that a Python string stands for, as `repr` writes it.
fn unquote(quoted: &[u8], into: &mut Vec<u8>) {
    let inner = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    let mut rest = inner;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            into.push(*byte);
            continue;
        }
        let hex = |digits: &[u8]| {
            std::str::from_utf8(digits)
                .ok()
                .and_then(|text| u8::from_str_radix(text, 16).ok())
        };
        match rest {
            [b'x', first, second, tail @ ..] => {
                into.extend(hex(&[*first, *second]));
                rest = tail;
            }
            [letter, tail @ ..] => {
                into.push(escaped(*letter));
                rest = tail;
            }
            [] => {}
        }
    }
}

fn escaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}
