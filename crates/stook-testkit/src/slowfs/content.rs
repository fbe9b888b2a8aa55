//! The work on bytes: of files, of extended attributes.

use super::inodes::path_of;
use super::source::{Result, Source, drop_set_id};
use rustix::buffer::spare_capacity;
use rustix::fs::{
    FallocateFlags, SeekFrom, XattrFlags, copy_file_range, fallocate, fdatasync, fsync, getxattr,
    getxattr_query, listxattr, listxattr_query, removexattr, seek, setxattr,
};
use rustix::io::{Errno, pread, pwrite};
use std::ffi::OsStr;

/// Longest piece of one copy in the server, so that it does not stop a reader for long.
const COPY_BYTES: u64 = 4 << 20;

/// Numbers of the Linux ABI, the same on every architecture.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// An attribute, or only how long it is.
#[derive(Debug)]
pub(super) enum Attribute {
    Value(Vec<u8>),
    Length(u32),
}

impl Source {
    pub(super) fn read(&self, file: u64, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let file = self.files.get(file)?;
        let mut data = Vec::with_capacity(bytes);
        // A short answer means the end of the file to the kernel, so a short read is gone on with.
        while data.len() < bytes {
            let at = offset + data.len() as u64;
            if pread(&*file, spare_capacity(&mut data), at)? == 0 {
                break;
            }
        }
        data.truncate(bytes);
        Ok(data)
    }

    pub(super) fn write(
        &self,
        file: u64,
        offset: u64,
        data: &[u8],
        drops_set_id: bool,
    ) -> Result<u32> {
        let file = self.files.get(file)?;
        if drops_set_id {
            drop_set_id(&file)?;
        }
        let written = pwrite(&*file, data, offset)?;
        u32::try_from(written).ok().ok_or(Errno::OVERFLOW)
    }

    pub(super) fn fsync(&self, file: u64, data_only: bool) -> Result<()> {
        let file = self.files.get(file)?;
        if data_only {
            fdatasync(&*file)
        } else {
            fsync(&*file)
        }
    }

    pub(super) fn setxattr(&self, node: u64, name: &OsStr, value: &[u8], flags: i32) -> Result<()> {
        let flags = XattrFlags::from_bits_retain(flags.cast_unsigned());
        let held = self.inodes.hold(node)?;
        setxattr(path_of(&held), name, value, flags)
    }

    /// Returns the value if it fits into `bytes`, with 0 its length.
    pub(super) fn getxattr(&self, node: u64, name: &OsStr, bytes: usize) -> Result<Attribute> {
        let held = self.inodes.hold(node)?;
        if bytes == 0 {
            return length(getxattr_query(path_of(&held), name)?);
        }
        let mut value = Vec::with_capacity(bytes);
        getxattr(path_of(&held), name, spare_capacity(&mut value))?;
        Ok(Attribute::Value(value))
    }

    /// Returns the names, each with a zero byte, if they fit into `bytes`, with 0 their length.
    pub(super) fn listxattr(&self, node: u64, bytes: usize) -> Result<Attribute> {
        let held = self.inodes.hold(node)?;
        if bytes == 0 {
            return length(listxattr_query(path_of(&held))?);
        }
        let mut names = Vec::with_capacity(bytes);
        listxattr(path_of(&held), spare_capacity(&mut names))?;
        Ok(Attribute::Value(names))
    }

    pub(super) fn removexattr(&self, node: u64, name: &OsStr) -> Result<()> {
        let held = self.inodes.hold(node)?;
        removexattr(path_of(&held), name)
    }

    pub(super) fn fallocate(&self, file: u64, range: (u64, u64), mode: i32) -> Result<()> {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        fallocate(&*self.files.get(file)?, mode, range.0, range.1)
    }

    /// Looks for data or a hole; the kernel does the other kinds of seeks alone.
    pub(super) fn lseek(&self, file: u64, offset: i64, whence: i32) -> Result<i64> {
        let offset = u64::try_from(offset).ok().ok_or(Errno::NXIO)?;
        let to = match whence {
            SEEK_DATA => SeekFrom::Data(offset),
            SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        let found = seek(&*self.files.get(file)?, to)?;
        i64::try_from(found).ok().ok_or(Errno::OVERFLOW)
    }

    pub(super) fn copy_file_range(
        &self,
        (from, mut from_offset): (u64, u64),
        (to, mut to_offset): (u64, u64),
        bytes: u64,
    ) -> Result<u32> {
        let (from, to) = (self.files.get(from)?, self.files.get(to)?);
        let bytes = usize::try_from(bytes.min(COPY_BYTES)).unwrap_or(0);
        let copied = copy_file_range(
            &*from,
            Some(&mut from_offset),
            &*to,
            Some(&mut to_offset),
            bytes,
        )?;
        u32::try_from(copied).ok().ok_or(Errno::OVERFLOW)
    }
}

fn length(bytes: usize) -> Result<Attribute> {
    let bytes = u32::try_from(bytes).ok().ok_or(Errno::OVERFLOW)?;
    Ok(Attribute::Length(bytes))
}
