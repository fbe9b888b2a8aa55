//! `stook bench update`.

use crate::args::{BenchUpdateArgs, Common};
use crate::exit::{CliError, Ending};

pub(crate) fn update(_args: &BenchUpdateArgs, _common: &Common) -> Result<Ending, CliError> {
    Ok(Ending::Failed)
}
