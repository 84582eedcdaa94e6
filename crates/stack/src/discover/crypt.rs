//! dm-crypt layers: cipher, key size, sector size and work queues; also the AES support of the CPU.

use super::{Finder, shorten_size, yes_or_no};
use assay_facts::block::Device;
use assay_facts::crypt;
use std::path::Path;

impl Finder<'_> {
    pub(super) fn crypt(&mut self, at: usize, device: &Device) {
        let uuid = self.line(&device.dir.join("dm/uuid")).unwrap_or_default();
        // CRYPT-LUKS2-…
        if let Some(kind) = uuid.split('-').nth(1) {
            self.set(at, "format", kind);
        }
        if let Some((_, words)) = self.mapper(at, device)
            && let Some((_, parameters)) = words.split_first()
        {
            let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
            for (key, value) in crypt::table(&parameters) {
                let value = match key {
                    "sector_size" | "data_offset" => shorten_size(&value),
                    _ => value,
                };
                self.set(at, key, value);
            }
        }
        // The key derivation costs time only when the device is opened.
        if let Ok(slaves) = device.slaves(self.host)
            && let Some(below) = slaves.first()
        {
            let node = format!("/dev/{}", below.name);
            let dump = self.ask_text(&["cryptsetup", "luksDump", &node]);
            let slots = dump.map(|dump| crypt::pbkdf(&dump)).unwrap_or_default();
            if !slots.is_empty() {
                self.set(at, "pbkdf", slots.join(" "));
            }
        }
        if let Some(aes) = self.cpu_aes() {
            self.set(at, "cpu_aes", yes_or_no(aes));
        }
        self.slaves(at, device);
    }

    /// Returns whether the CPU has AES instructions; `None` if unknown.
    fn cpu_aes(&mut self) -> Option<bool> {
        let host = self.host;
        *self.cpu_aes.get_or_insert_with(|| {
            let text = host.read_text(Path::new("/proc/cpuinfo")).ok()?;
            let line = text
                .lines()
                .find(|line| line.starts_with("flags") || line.starts_with("Features"))?;
            Some(line.split_whitespace().any(|word| word == "aes"))
        })
    }
}
