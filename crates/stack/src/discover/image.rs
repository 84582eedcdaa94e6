//! Disk images: their format and backing files.

use super::{Finder, LIMITS, shorten_size};
use assay_facts::block::Device;
use assay_facts::image::{HEADER, Header, header};
use assay_facts::qemu;
use assay_host::FileKind;
use assay_model::stack::{Layer, LayerKind};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

impl Finder<'_> {
    /// Adds a file as a layer. If it has an image format, adds the format as a layer above the file. The format is
    /// detected unless it is declared.
    pub(super) fn image_file(&mut self, path: &Path, declared: Option<&str>) -> usize {
        let real = self.host.realpath(path);
        let real = real.unwrap_or_else(|_| path.to_owned());
        let (read, unknown) = match self.start(&real, 0, HEADER) {
            Ok(bytes) => (header(&bytes), None),
            Err(reason) => (Header::default(), Some(format!("its format: {reason}"))),
        };
        let format = match declared.filter(|format| *format != "probed") {
            Some(format) => format.to_owned(),
            None => read.format.to_owned(),
        };
        let plain = declared.is_none() && matches!(format.as_str(), "raw" | "");
        if plain {
            return match self.host.stat(&real) {
                Ok(stat) if stat.kind == FileKind::BlockDevice => {
                    match Device::of_number(self.host, stat.rdev) {
                        Ok(device) => self.device(&device),
                        Err(_) => self.file(&real),
                    }
                }
                _ => self.file(&real),
            };
        }
        let mut layer = Layer::new(LayerKind::Image, format.clone());
        layer.place = Some(real.clone());
        layer.unknown.extend(unknown);
        let mut backing = None;
        // An image declared as raw is raw, whatever a guest wrote to its first bytes.
        if format == read.format {
            for (key, value) in &read.settings {
                let value = match *key {
                    "size" | "cluster_size" => shorten_size(value),
                    _ => value.clone(),
                };
                layer.settings.insert((*key).to_owned(), value);
            }
            backing = read.backing_at;
        }
        let key = format!("image:{format}:{}", real.display());
        self.enter(key, layer, |finder, at| {
            finder.stand_on_node(at, &real);
            if let Some((offset, length)) = backing {
                finder.backing(at, &real, offset, length);
            }
        })
    }

    /// Adds the backing file of an image, whose name is in the image's header.
    fn backing(&mut self, at: usize, image: &Path, offset: u64, length: usize) {
        let name = match self.start(image, offset, length) {
            Ok(bytes) if bytes.len() == length => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(_) => return self.unknown(at, "its backing file: the header is cut short"),
            Err(reason) => return self.unknown(at, format!("its backing file: {reason}")),
        };
        self.set(at, "backing_file", "yes");
        if name.starts_with("json:") || qemu::protocol(&name) != "file" {
            return self.unknown(at, "its backing file is not a plain file");
        }
        let dir = image.parent().unwrap_or(Path::new("/"));
        let path: PathBuf = dir.join(name.strip_prefix("file:").unwrap_or(&name));
        // A header may contain any path; only files and devices are opened.
        match self.host.stat(&path) {
            Ok(stat) if matches!(stat.kind, FileKind::Regular | FileKind::BlockDevice) => {
                let below = self.image_file(&path, None);
                self.stand(at, below);
            }
            Ok(_) => self.unknown(at, "its backing file is neither a file nor a device"),
            Err(error) => self.unknown(at, format!("its backing file: {error}")),
        }
    }

    /// Reads a range of a file, because the file may be too large to read completely.
    fn start(&self, path: &Path, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let stat = self.host.stat(path).map_err(|error| error.to_string())?;
        if !matches!(stat.kind, FileKind::Regular | FileKind::BlockDevice) {
            return Err("neither a file nor a device".to_owned());
        }
        let mut input = OsStr::new("if=").to_owned();
        input.push(path);
        let (skip, count) = (format!("skip={offset}"), format!("count={length}"));
        let argv = [
            "dd",
            "status=none",
            "bs=4k",
            "iflag=skip_bytes,count_bytes,fullblock",
        ];
        let mut argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        argv.extend([input.as_os_str(), OsStr::new(&skip), OsStr::new(&count)]);
        let host = self.headers.unwrap_or(self.host);
        Self::ask_of(host, &argv, LIMITS).map(|output| output.stdout)
    }
}
