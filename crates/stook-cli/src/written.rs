//! What `create`, `update` and `commit` wrote, or would write.

use stook_archive::{PlanSummary, WriteReport};

use crate::args::Common;
use crate::exit::{CliError, Ending, ending_with, some_failed};
use crate::progress::Reporter;
use crate::report::{Line, NewVolume, Summary, Written};

pub(crate) fn print_written(
    report: &WriteReport,
    common: &Common,
    reporter: &Reporter,
) -> Result<Ending, CliError> {
    let ending = some_failed(report.failed);
    let written = Written::new(report);
    let text = written.text();
    let Some(plan) = &report.plan else {
        reporter.summary(Summary::Written(written), &text)?;
        return Ok(ending);
    };
    print_dry_run(plan, Summary::Written(written), &text, ending, common)
}

/// Prints what would be written: of a dry run all of it is data.
pub(crate) fn print_dry_run(
    plan: &PlanSummary,
    summary: Summary,
    text: &str,
    ending: Ending,
    common: &Common,
) -> Result<Ending, CliError> {
    ending_with(ending, |data| {
        for volume in plan.volumes.iter().map(NewVolume::new) {
            if common.json {
                data.json(&Line::Volume(volume))?;
            } else {
                data.line(&volume.text())?;
            }
        }
        if common.json {
            data.json(&Line::Summary(summary))?;
        } else {
            data.line(text)?;
        }
        Ok(())
    })
}
