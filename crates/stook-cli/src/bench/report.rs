//! `stook bench report`.

use crate::args::{Common, ReportArgs};
use crate::exit::{CliError, Ending};

pub(crate) fn report(_args: &ReportArgs, _common: &Common) -> Result<Ending, CliError> {
    Ok(Ending::Failed)
}
