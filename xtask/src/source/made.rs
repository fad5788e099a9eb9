//! Small checkouts that tests of the checks are run on.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Workspace;

/// A directory with a few files, removed with this value.
pub(crate) struct Checkout {
    root: PathBuf,
}

impl Checkout {
    /// Makes the files, each a path below `crates/` and its text. Every crate has a manifest.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("posse-checkout-{}-{number}", std::process::id());
        let checkout = Self {
            root: std::env::temp_dir().join(name),
        };
        for (path, text) in files {
            let krate = path.split('/').next().unwrap();
            let manifest = format!("package.name = '{krate}'\n");
            checkout.write_new(&format!("{krate}/Cargo.toml"), &manifest);
            checkout.write(path, text);
        }
        checkout
    }

    pub(crate) fn read(&self) -> Workspace {
        Workspace::read(&self.root).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join("crates").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn write_new(&self, path: &str, text: &str) {
        if !self.root.join("crates").join(path).exists() {
            self.write(path, text);
        }
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
