//! Facts about the machine: what a sample means nothing without. No names of hosts, users or directories.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The machine that a bench ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The model of the first processor, or its architecture.
    pub processor: String,
    /// Processors that the bench may use.
    pub processors: usize,
    /// Memory that the bench may use.
    pub memory_bytes: Option<u64>,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Name of the distribution.
    pub system: String,
    /// Whether the bench has the rights of the superuser.
    pub is_superuser: bool,
    /// How many processes wanted to run in the minute before.
    pub load_average: Option<f64>,
}

impl Machine {
    /// Returns the facts about this machine; what cannot be read is left out.
    pub fn this() -> Self {
        Self {
            processor: processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: stook_sys::available_cpus(),
            memory_bytes: Some(stook_sys::memory_limit()),
            kernel: format!(
                "Linux {}",
                read("/proc/sys/kernel/osrelease")
                    .unwrap_or_default()
                    .trim()
            ),
            system: system().unwrap_or_else(|| "unknown".to_owned()),
            is_superuser: stook_sys::is_root(),
            load_average: read("/proc/loadavg")
                .and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }
}

fn read(path: &str) -> Option<String> {
    stook_sys::read_text(Path::new(path)).ok()
}

/// Other architectures than x86 name it differently or not at all.
fn processor() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let value = |key: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim().to_owned())
    };
    value("model name").or_else(|| value("Hardware"))
}

fn system() -> Option<String> {
    let text = read("/etc/os-release")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_known() {
        let machine = Machine::this();
        assert!(machine.processors >= 1 && !machine.processor.is_empty());
        assert!(
            machine.kernel.starts_with("Linux ") && machine.kernel.len() > 8,
            "{machine:?}"
        );
        assert!(machine.load_average.is_some_and(|load| load >= 0.0));
    }
}
