//! `stook bench fileset`.

use crate::args::{Common, FilesetArgs};
use crate::exit::{CliError, Ending};

pub(crate) fn fileset(_args: &FilesetArgs, _common: &Common) -> Result<Ending, CliError> {
    Ok(Ending::Failed)
}
