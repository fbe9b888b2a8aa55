//! `stook bench cache`.

use crate::args::{BenchCacheArgs, Common};
use crate::exit::{CliError, Ending};

pub(crate) fn cache(_args: &BenchCacheArgs, _common: &Common) -> Result<Ending, CliError> {
    Ok(Ending::Failed)
}
