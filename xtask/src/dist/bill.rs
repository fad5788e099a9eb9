//! The bill of materials: what posse is built from, for programs (CycloneDX 1.6).

use serde_json::{Value, json};

use super::Release;
use super::crates::Crate;

/// Returns the bill of a release. It has no random serial number, so that two have the same bytes.
pub(super) fn of(release: &Release, crates: &[Crate]) -> String {
    let foreign = crates.iter().filter(|it| it.checksum.is_some());
    let components: Vec<Value> = foreign.map(component).collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "posse",
                "name": "posse",
                "version": release.version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
    });
    format!("{bill:#}\n")
}

fn component(one: &Crate) -> Value {
    let purl = format!("pkg:cargo/{}@{}", one.name, one.version);
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": one.name,
        "version": one.version,
        "hashes": [{ "alg": "SHA-256", "content": one.checksum }],
        // Older manifests separate licences by a slash.
        "licenses": [{ "expression": one.licence.replace('/', " OR ") }],
        "purl": purl,
    })
}
