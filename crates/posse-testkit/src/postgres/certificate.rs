//! A certificate for a server on this machine, and the authority that signed it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::install::{Install, program, run};
use crate::scripted::SetupError;

/// The names it is valid for.
const NAMES: &str = "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n\
                     extendedKeyUsage=serverAuth\n";

/// Makes `authority.crt`, `server.crt` and `server.key` in a directory.
pub(super) fn make(install: &Install, directory: &Path) -> Result<(), SetupError> {
    fs::write(directory.join("names"), NAMES)?;
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ];
    let openssl = |words: &[&str]| run(program("openssl").current_dir(directory).args(words));
    let authority = [
        "-x509",
        "-days",
        "3650",
        "-subj",
        "/CN=tests of posse",
        "-keyout",
        "authority.key",
    ];
    openssl(&[&["req"], &key[..], &authority, &["-out", "authority.crt"]].concat())?;
    let request = [
        "-new",
        "-subj",
        "/CN=localhost",
        "-keyout",
        "server.key",
        "-out",
        "server.csr",
    ];
    openssl(&[&["req"], &key[..], &request].concat())?;
    let sign = [
        "-req",
        "-days",
        "3650",
        "-in",
        "server.csr",
        "-CA",
        "authority.crt",
        "-CAkey",
        "authority.key",
    ];
    openssl(
        &[
            &["x509"],
            &sign[..],
            &["-CAcreateserial", "-extfile", "names", "-out", "server.crt"],
        ]
        .concat(),
    )?;
    for name in ["server.crt", "server.key"] {
        let path = directory.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        install.own(&path)?;
    }
    Ok(())
}
