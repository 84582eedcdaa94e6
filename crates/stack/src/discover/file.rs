//! Files that contain other layers, and device nodes.

use super::Finder;
use assay_facts::block::Device;
use assay_host::FileKind;
use assay_model::Bytes;
use assay_model::stack::{Layer, LayerKind};
use std::path::Path;

impl Finder<'_> {
    /// Adds a file as a layer above its file system.
    pub(super) fn file(&mut self, path: &Path) -> usize {
        let real = self.host.realpath(path);
        let real = real.unwrap_or_else(|_| path.to_owned());
        let mut layer = Layer::new(LayerKind::File, real.to_string_lossy());
        layer.place = Some(real.clone());
        match self.host.stat(&real) {
            Ok(stat) => {
                let size = Bytes(stat.size).short();
                layer.settings.insert("size".to_owned(), size);
            }
            Err(error) => layer.unknown.push(error.to_string()),
        }
        let key = format!("file:{}", real.display());
        self.enter(key, layer, |finder, at| {
            // A file that disappeared, or that is in another mount namespace, has no known lower
            // layer.
            if finder.stack.layers[at].unknown.is_empty() {
                finder.file_system_of(at, &real);
            }
        })
    }

    /// Connects a layer with the block device, or the file used as a device, at a path.
    pub(super) fn stand_on_node(&mut self, at: usize, node: &Path) {
        let stat = self.host.stat(node);
        let device = match stat {
            Ok(stat) if stat.kind == FileKind::BlockDevice => {
                Device::of_number(self.host, stat.rdev)
            }
            Ok(stat) if stat.kind == FileKind::Regular => {
                let below = self.file(node);
                return self.stand(at, below);
            }
            Ok(_) => {
                let node = node.display();
                return self.unknown(
                    at,
                    format!("what lies below: {node} is neither file nor device"),
                );
            }
            Err(error) => Err(error),
        };
        match device {
            Ok(device) => {
                let below = self.device(&device);
                self.stand(at, below);
            }
            Err(error) => self.unknown(at, format!("what lies below: {error}")),
        }
    }
}
