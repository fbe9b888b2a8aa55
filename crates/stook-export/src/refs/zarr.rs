//! Arrays of Zarr's format 2: their metadata, and the numbers of their chunks.
//!
//! # Source
//! <https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html>

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Map, Value};
use stook_archive::{Archive, ListOptions, Row, Silent, list};
use stook_sys::{SysError, display_bytes};

use super::path_below;
use crate::ExportError;

/// Longer metadata is none.
const MOST_BYTES: u64 = 16 << 20;

/// What the selected members say of arrays.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    /// Each document by its path.
    pub(super) metadata: Map<String, Value>,
    grids: BTreeMap<String, Grid>,
}

/// The chunks of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grid {
    array: u32,
    /// Chunks along each axis.
    counts: Vec<u64>,
    /// All of them.
    chunks: u64,
}

/// What a path is in arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A document that describes a group or an array.
    Metadata,
    /// A chunk of an array, by the numbers of both.
    Chunk {
        array: u32,
        number: u64,
    },
    Other,
}

impl Arrays {
    /// Reads the metadata of all selected groups and arrays.
    pub(super) fn read(
        archive: &mut Archive,
        options: &ListOptions,
        below: &[u8],
    ) -> Result<Self, ExportError> {
        let mut rows = Vec::new();
        list(archive, options, &Silent, |row| {
            if row.md5.is_some() && is_metadata(row.name) {
                rows.push(row.to_row());
            }
            ControlFlow::Continue(())
        })?;
        let mut arrays = Self::default();
        for row in rows {
            let path = path_below(&row.name, below).ok().flatten();
            let Some(path) = path.and_then(|path| String::from_utf8(path).ok()) else {
                continue;
            };
            let document = read_document(archive, &row, &path)?;
            arrays.add(path, document)?;
        }
        Ok(arrays)
    }

    fn add(&mut self, path: String, document: Value) -> Result<(), ExportError> {
        if let Some(field) = path.strip_suffix("/.zarray") {
            let array = u32::try_from(self.grids.len()).unwrap_or(u32::MAX);
            let grid = Grid::of(array, &document).map_err(|why| bad(&path, why))?;
            self.grids.insert(field.to_owned(), grid);
        }
        self.metadata.insert(path, document);
        Ok(())
    }

    /// Returns what a path is. Chunks are named `0.1.2`: fsspec knows no other names.
    pub(super) fn part(&self, path: &str) -> Part {
        if is_metadata(path.as_bytes()) {
            return Part::Metadata;
        }
        let Some((field, key)) = path.rsplit_once('/') else {
            return Part::Other;
        };
        let chunk = self.grids.get(field).and_then(|grid| {
            let number = grid.number(key)?;
            Some(Part::Chunk {
                array: grid.array,
                number,
            })
        });
        chunk.unwrap_or(Part::Other)
    }

    /// Returns the path of each array, with its number and its chunks.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, u32, u64)> {
        let grids = self.grids.iter();
        grids.map(|(field, grid)| (field.as_str(), grid.array, grid.chunks))
    }
}

impl Grid {
    fn of(array: u32, document: &Value) -> Result<Self, &'static str> {
        let (shape, chunks) = (numbers(document, "shape")?, numbers(document, "chunks")?);
        if shape.len() != chunks.len() {
            return Err("`shape` and `chunks` differ in length");
        }
        if document.get("dimension_separator").and_then(Value::as_str) == Some("/") {
            return Err("its chunks are named with slashes, which fsspec does not read as Parquet");
        }
        let mut counts = Vec::with_capacity(shape.len());
        for (&size, &chunk) in shape.iter().zip(&chunks) {
            if chunk == 0 {
                return Err("a chunk has a length of 0");
            }
            counts.push(size.div_ceil(chunk));
        }
        let product = counts
            .iter()
            .try_fold(1_u64, |all, &one| all.checked_mul(one));
        Ok(Self {
            array,
            counts,
            chunks: product.ok_or("it has too many chunks")?,
        })
    }

    /// Returns the number of a chunk: the last axis counts fastest.
    fn number(&self, key: &str) -> Option<u64> {
        if self.counts.is_empty() {
            return (key == "0").then_some(0);
        }
        let mut number = 0;
        let mut axes = self.counts.iter();
        for part in key.split('.') {
            let (index, &count) = (part.parse::<u64>().ok()?, axes.next()?);
            // One name for each chunk.
            let is_plain = part.len() == 1 || !part.starts_with(['0', '+']);
            if index >= count || !is_plain {
                return None;
            }
            number = number * count + index;
        }
        axes.next().is_none().then_some(number)
    }
}

fn numbers(document: &Value, name: &str) -> Result<Vec<u64>, &'static str> {
    let list = document.get(name).and_then(Value::as_array);
    let numbers = list.and_then(|list| list.iter().map(Value::as_u64).collect());
    numbers.ok_or("`shape` or `chunks` is missing, or no list of numbers")
}

fn is_metadata(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next();
    matches!(
        name,
        Some(b".zarray" | b".zgroup" | b".zattrs" | b".zmetadata")
    )
}

fn read_document(archive: &Archive, row: &Row, path: &str) -> Result<Value, ExportError> {
    if row.size > MOST_BYTES {
        return Err(bad(path, "it is longer than 16 MiB"));
    }
    let reader = archive.reader(row)?;
    let mut bytes = vec![0; usize::try_from(row.size).unwrap_or(0)];
    reader.read_at(0, &mut bytes).map_err(|source| SysError {
        operation: "read",
        path: display_bytes(&row.name).into(),
        source,
    })?;
    serde_json::from_slice(&bytes).map_err(|error| bad(path, &error.to_string()))
}

fn bad(path: &str, why: &str) -> ExportError {
    ExportError::BadZarr {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arrays(document: Value) -> Result<Arrays, ExportError> {
        let mut arrays = Arrays::default();
        arrays.add("g/x/.zarray".to_owned(), document)?;
        Ok(arrays)
    }

    #[test]
    fn chunks_are_numbered_as_fsspec_does() {
        let arrays = arrays(json!({"shape": [10, 7], "chunks": [4, 3]})).unwrap();
        let part = |path: &str| arrays.part(path);
        let chunk = |number| Part::Chunk { array: 0, number };
        assert_eq!(part("g/x/0.0"), chunk(0));
        assert_eq!(part("g/x/1.2"), chunk(5));
        assert_eq!(part("g/x/2.2"), chunk(8));
        for other in [
            "g/x/3.0",
            "g/x/0.3",
            "g/x/0",
            "g/x/0.0.0",
            "g/x/00.0",
            "g/x/+1.0",
            "g/y/0.0",
            "0.0",
        ] {
            assert_eq!(part(other), Part::Other, "{other}");
        }
        assert_eq!(part("g/x/.zattrs"), Part::Metadata);
        assert_eq!(arrays.each().collect::<Vec<_>>(), [("g/x", 0, 9)]);
    }

    #[test]
    fn a_scalar_has_one_chunk() {
        let arrays = arrays(json!({"shape": [], "chunks": []})).unwrap();
        assert_eq!(
            arrays.part("g/x/0"),
            Part::Chunk {
                array: 0,
                number: 0
            }
        );
        assert_eq!(arrays.part("g/x/1"), Part::Other);
    }

    #[test]
    fn arrays_that_make_no_sense_are_refused() {
        for document in [
            json!({}),
            json!({"shape": [1]}),
            json!({"shape": [1], "chunks": [0]}),
            json!({"shape": [1, 2], "chunks": [1]}),
            json!({"shape": [-1], "chunks": [1]}),
            json!({"shape": [u64::MAX, u64::MAX], "chunks": [1, 1]}),
            json!({"shape": [1], "chunks": [1], "dimension_separator": "/"}),
        ] {
            assert!(arrays(document.clone()).is_err(), "{document}");
        }
    }
}
