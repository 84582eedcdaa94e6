//! Collects the temperatures of drives, because a hot drive throttles. See the kernel's
//! Documentation/hwmon/sysfs-interface.

use crate::gather::{Gather, lossy};
use std::path::Path;

const HWMON: &str = "/sys/class/hwmon";

pub(crate) fn collect(g: &mut Gather<'_>) {
    for name in g.list("thermal", HWMON) {
        let dir = format!("{HWMON}/{}", lossy(&name));
        let Some(driver) = g.read(&format!("thermal.{}", lossy(&name)), &format!("{dir}/name"))
        else {
            continue;
        };
        if !matches!(driver.trim(), "nvme" | "drivetemp") {
            continue;
        }
        // `nvme0` for NVMe, `0:0:0:0` for a SCSI or SATA drive.
        let device = g.host.realpath(Path::new(&format!("{dir}/device")));
        let device = device
            .ok()
            .and_then(|path| path.file_name().map(lossy))
            .unwrap_or_else(|| lossy(&name));
        for (key, file) in [
            ("temperature", "temp1_input"),
            ("warning", "temp1_max"),
            ("critical", "temp1_crit"),
        ] {
            let key = format!("thermal.{device}.{key}");
            // Thousandths of a degree Celsius.
            g.value(&key, &format!("{dir}/{file}"), |text| {
                Some(text.parse::<f64>().ok()? / 1000.0)
            });
        }
    }
}
