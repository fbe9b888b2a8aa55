//! What each operation of a pickle does to the stack.
//!
//! # Source
//! `pickletools` of Python, protocols 0 to 5.

use super::PickleError;
use super::input::{Fault, Input};
use super::value::{Reference, Span, Value};
use super::walk::Walker;

/// The number of an object in a line: 8 bytes, each as `\x00`, in quotes.
const LONGEST_OID_LINE: u64 = 34;

/// Newest protocol that is known.
const NEWEST: u8 = 5;

impl Walker {
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        operation: u8,
        input: &mut impl Input,
        found: &mut impl FnMut(Reference),
    ) -> Result<(), Fault> {
        match operation {
            // From the most frequent ones on.
            b'q' => self.put(input.take::<1>()?[0].into())?,
            b'r' => self.put(u32::from_le_bytes(input.take()?))?,
            b'h' => self.get(input.take::<1>()?[0].into())?,
            b'j' => self.get(u32::from_le_bytes(input.take()?))?,
            b'U' | b'C' | 0x8c => {
                let [len] = input.take()?;
                self.text(len.into(), input)?;
            }
            b'X' | b'T' | b'B' => {
                let len = u32::from_le_bytes(input.take()?);
                self.text(len.into(), input)?;
            }
            b'c' => self.class_of_lines(input)?,
            b'Q' => {
                let value = self.pop()?;
                self.refer(value, found);
                self.push(Value::Other)?;
            }
            b'(' => self.mark()?,
            _ => return self.step_plain(operation, input, found),
        }
        Ok(())
    }

    /// Operations that make a value of nothing, or of others.
    #[inline(always)]
    fn step_plain(
        &mut self,
        operation: u8,
        input: &mut impl Input,
        found: &mut impl FnMut(Reference),
    ) -> Result<(), Fault> {
        match operation {
            b'N' | b'}' | b')' | 0x88 | 0x89 | 0x8f | 0x97 => self.push(Value::Other)?,
            b']' => self.push(Value::EmptyList)?,
            b'K' | 0x82 => self.number(1, input)?,
            b'M' | 0x83 => self.number(2, input)?,
            b'J' | 0x84 => self.number(4, input)?,
            b'G' => self.number(8, input)?,
            0x85..=0x87 => self.last_as_tuple(usize::from(operation - 0x84))?,
            b'u' | b'e' | b't' | b'l' | b'd' | b'1' | 0x90 | 0x91 | b'o' => {
                self.step_marked(operation)?;
            }
            b's' | b'a' | b'b' | b'R' | 0x81 | 0x92 | 0x93 | b'0' | b'2' => {
                self.step_few(operation)?;
            }
            0x80 => match input.take()? {
                [protocol] if protocol <= NEWEST => {}
                [protocol] => return Err(PickleError::Protocol(protocol).into()),
            },
            0x94 => self.put_next()?,
            // A frame is a hint for readers; READONLY_BUFFER changes what is on top.
            0x95 => drop(input.take::<8>()?),
            0x98 => drop(self.top()?),
            _ => return self.step_rare(operation, input, found),
        }
        Ok(())
    }

    /// Operations that take all values above the last mark.
    fn step_marked(&mut self, operation: u8) -> Result<(), PickleError> {
        let from = self.unmark()?;
        match operation {
            b't' => return self.tuple(from),
            b'e' => return self.append(from),
            b'l' => {
                self.stack.insert(from, Value::EmptyList);
                return self.append(from + 1);
            }
            b'o' if self.stack.len() == from => return Err(PickleError::Underflow),
            b'u' | b'd' if !(self.stack.len() - from).is_multiple_of(2) => {
                return Err(PickleError::Underflow);
            }
            _ => self.stack.truncate(from),
        }
        match operation {
            // Added to a dictionary or a set, which stays; or taken away.
            b'u' | 0x90 => self.top().map(drop),
            b'1' => Ok(()),
            _ => self.push(Value::Other),
        }
    }

    /// Operations that take one, two or three values.
    fn step_few(&mut self, operation: u8) -> Result<(), PickleError> {
        match operation {
            b'0' => match self.pop() {
                // Of a mark on top it takes the mark.
                Err(_) if self.marks.last() == Some(&self.stack.len()) => self.unmark().map(drop),
                popped => popped.map(drop),
            },
            b'2' => self.top().and_then(|value| self.push(value)),
            b'a' => self.top().and_then(|_| self.append(self.stack.len() - 1)),
            b'b' => self.pop().and_then(|_| self.top()).map(drop),
            b's' => self
                .pop()
                .and_then(|_| self.pop())
                .and_then(|_| self.top())
                .map(drop),
            b'R' | 0x81 => self.replace(2, Value::Other),
            0x92 => self.replace(3, Value::Other),
            _ => self.class_of_texts(),
        }
    }

    /// Operations with long lengths, and those of the text protocol.
    fn step_rare(
        &mut self,
        operation: u8,
        input: &mut impl Input,
        found: &mut impl FnMut(Reference),
    ) -> Result<(), Fault> {
        match operation {
            0x8a => {
                let [len] = input.take()?;
                self.number(len.into(), input)?;
            }
            0x8b => {
                let len = u32::from_le_bytes(input.take()?);
                self.number(len.into(), input)?;
            }
            0x8d | 0x8e => {
                let len = u64::from_le_bytes(input.take()?);
                self.text(len, input)?;
            }
            0x96 => {
                let len = u64::from_le_bytes(input.take()?);
                self.number(len, input)?;
            }
            b'F' | b'I' | b'L' => {
                input.skip_line()?;
                self.push(Value::Other)?;
            }
            _ => return self.step_lines(operation, input, found),
        }
        Ok(())
    }

    fn step_lines(
        &mut self,
        operation: u8,
        input: &mut impl Input,
        found: &mut impl FnMut(Reference),
    ) -> Result<(), Fault> {
        let offset = input.offset();
        match operation {
            b'S' | b'V' => {
                let len = input.skip_line()?;
                let value = self.line_text(operation, offset, len, input)?;
                self.push(value)?;
            }
            b'P' => {
                let len = input.skip_line()?;
                let value = self.line_text(operation, offset, len, input)?;
                self.refer(value, found);
                self.push(Value::Other)?;
            }
            b'p' => {
                let number = line_number(input)?;
                self.put(number)?;
            }
            b'g' => {
                let number = line_number(input)?;
                self.get(number)?;
            }
            b'i' => {
                input.skip_line()?;
                input.skip_line()?;
                self.step_marked(b'1')?;
                self.push(Value::Other)?;
            }
            other => return Err(PickleError::Operation(other).into()),
        }
        Ok(())
    }

    /// A string in a line, which stands between quotes after `S`; keeps what may be a kind or an object.
    fn line_text(
        &mut self,
        operation: u8,
        offset: u64,
        len: u64,
        input: &mut impl Input,
    ) -> Result<Value, Fault> {
        let Some(span) = Span::new(offset, len) else {
            return Ok(Value::Other);
        };
        let value = match operation {
            b'S' => Value::Quoted(span),
            _ => Value::Text(span),
        };
        if len > LONGEST_OID_LINE {
            return Ok(value);
        }
        let mut bytes = Vec::new();
        self.name_of(input, value, &mut bytes)?;
        Ok(match bytes[..] {
            [kind] => Value::Letter(kind.into()),
            _ => match <[u8; 8]>::try_from(&bytes[..]) {
                Ok(eight) => Value::Eight(u64::from_be_bytes(eight)),
                Err(_) => value,
            },
        })
    }

    /// Passes a number of so many bytes.
    #[inline]
    fn number(&mut self, len: u64, input: &mut impl Input) -> Result<(), Fault> {
        input.skip(len)?;
        Ok(self.push(Value::Other)?)
    }

    /// Passes a string; keeps what may be a kind or an object.
    #[inline]
    fn text(&mut self, len: u64, input: &mut impl Input) -> Result<(), Fault> {
        let offset = input.offset();
        let value = match len {
            1 => Value::Letter(input.take::<1>()?[0].into()),
            8 => Value::Eight(u64::from_be_bytes(input.take()?)),
            _ => {
                input.skip(len)?;
                Span::new(offset, len).map_or(Value::Other, Value::Text)
            }
        };
        Ok(self.push(value)?)
    }

    #[inline]
    fn class_of_lines(&mut self, input: &mut impl Input) -> Result<(), Fault> {
        let offset = input.offset();
        let len = input
            .skip_line()?
            .saturating_add(input.skip_line()?)
            .saturating_add(1);
        Ok(self.push(Span::new(offset, len).map_or(Value::Other, Value::Class))?)
    }

    #[inline]
    fn put(&mut self, number: u32) -> Result<(), PickleError> {
        let value = self.top()?;
        self.memo.put(number as usize, value);
        Ok(())
    }

    fn put_next(&mut self) -> Result<(), PickleError> {
        let value = self.top()?;
        self.memo.put(self.memo.next(), value);
        Ok(())
    }

    #[inline]
    fn get(&mut self, number: u32) -> Result<(), PickleError> {
        let value = self.memo.get(number as usize);
        self.push(value.ok_or(PickleError::Memo(number.into()))?)
    }
}

/// Reads a line that is a number.
fn line_number(input: &mut impl Input) -> Result<u32, Fault> {
    let offset = input.offset();
    let len = input.skip_line()?;
    let mut digits = Vec::new();
    // No number of 32 bits is longer.
    input.copy(offset, len.min(11), &mut digits)?;
    let text = std::str::from_utf8(digits.trim_ascii()).ok();
    Ok(text
        .and_then(|text| text.parse().ok())
        .ok_or(PickleError::Number)?)
}
