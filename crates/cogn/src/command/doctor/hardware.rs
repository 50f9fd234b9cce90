//! The memory and the cores of this machine, and the known model that they suit. Advice, so never a problem.

use std::fs;

use super::finding::Finding;
use crate::models::suitable;

pub(super) fn advice() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total_bytes(&text));
    Finding::ok("models for this machine", message(memory, cores))
}

fn message(memory: Option<u64>, cores: usize) -> String {
    let cores_text = match cores {
        1 => String::from("1 core"),
        cores => format!("{cores} cores"),
    };
    let Some(memory) = memory else {
        return format!("{cores_text}, memory unknown; `cogn models list` shows what each model is for");
    };
    // Tenths of GiB, rounded down.
    let tenths = memory / (1024 * 1024 * 1024 / 10);
    let machine = format!("{cores_text}, {}.{} GiB of memory", tenths / 10, tenths % 10);
    match suitable(memory, cores) {
        Some(entry) => format!(
            "{machine}: up to {} (`cogn models pull {}`)",
            entry.title, entry.name
        ),
        None => format!("{machine}: too little for the known models; use a vendor or another server"),
    }
}

/// The line `MemTotal` of Linux, in KiB.
fn total_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{message, total_bytes};

    #[test]
    fn memory_is_read_from_meminfo() {
        let text = "MemFree:  12 kB\nMemTotal:       16284104 kB\n";
        assert_eq!(total_bytes(text), Some(16_284_104 * 1024));
        assert_eq!(total_bytes("MemTotal: many"), None);
        assert_eq!(total_bytes(""), None);
    }

    #[test]
    fn advice_names_a_model_that_fits() {
        let gib = 1024 * 1024 * 1024;
        let text = message(Some(8 * gib), 4);
        assert!(
            text.starts_with("4 cores, 8.0 GiB of memory: ") && text.contains("pull qwen3-1.7b"),
            "{text}"
        );
        assert!(message(Some(gib / 2), 1).starts_with("1 core, 0.5 GiB of memory: too little"));
        assert!(message(None, 2).contains("memory unknown"));
    }
}
