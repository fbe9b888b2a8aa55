//! `stook profile`.

use crate::args::{Common, ProfileArgs};
use crate::exit::{CliError, Ending};

pub(crate) fn profile(_args: &ProfileArgs, _common: &Common) -> Result<Ending, CliError> {
    Ok(Ending::Failed)
}
