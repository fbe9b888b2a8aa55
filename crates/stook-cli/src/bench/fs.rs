//! `stook bench fs`.

use crate::args::{BenchFsArgs, Common};
use crate::exit::{CliError, Ending};

pub(crate) fn fs(_args: &BenchFsArgs, _common: &Common) -> Result<Ending, CliError> {
    Ok(Ending::Failed)
}
