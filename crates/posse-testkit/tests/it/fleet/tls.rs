//! TLS: what was asked to be encrypted and verified is, or there is no connection.

use std::error::Error as _;
use std::process::Command;

use posse_port::store::{Store, StoreError};
use posse_store::Postgres;
use posse_testkit::postgres::{Options, Server};
use posse_testkit::store_contract::{agent, birth};

use super::wire::Wire;

/// Why a store cannot be opened, to the last cause.
fn refused(url: &str) -> String {
    let error = Postgres::open(url).err().expect("it must not be opened");
    assert!(matches!(error, StoreError::Engine { .. }), "{error:?}");
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    said
}

#[tokio::test]
async fn what_is_encrypted_is_verified() {
    let listens = Options {
        tls: true,
        ..Options::default()
    }
    .set("listen_addresses", "127.0.0.1,127.0.0.2");
    let server = Server::start(listens).unwrap();
    let url = |host: &str, authority: &str| {
        let port = server.port();
        format!(
            "postgres://postgres@{host}:{port}/postgres?sslmode=verify-full&sslrootcert={authority}"
        )
    };
    let authority = server.authority().display().to_string();
    for host in ["localhost", "127.0.0.1"] {
        let store = Postgres::open(&url(host, &authority)).unwrap();
        assert!(store.read(agent(1)).await.is_err());
    }
    assert!(refused(&url("127.0.0.2", &authority)).contains("not valid for name"));
    let directory = tempfile::tempdir().unwrap();
    let stranger = stranger(&directory);
    assert!(refused(&url("localhost", &stranger)).contains("UnknownIssuer"));
    let unnamed = format!(
        "postgres://postgres@localhost:{}/postgres?sslmode=require",
        server.port()
    );
    assert!(
        refused(&unnamed).contains("UnknownIssuer"),
        "nobody is trusted without being verified"
    );
}

/// Another authority's certificate.
#[expect(clippy::disallowed_methods, reason = "it makes what a test is about")]
fn stranger(directory: &tempfile::TempDir) -> String {
    let mut openssl = Command::new("openssl");
    openssl.current_dir(directory).args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
    ]);
    openssl.args([
        "-nodes",
        "-subj",
        "/CN=a stranger",
        "-keyout",
        "key",
        "-out",
        "stranger.crt",
    ]);
    assert!(openssl.output().unwrap().status.success());
    directory.path().join("stranger.crt").display().to_string()
}

#[tokio::test]
async fn nothing_goes_unencrypted_that_was_to_be_encrypted() {
    let plain = Server::start(Options::default()).unwrap();
    let wire = Wire::to(plain.port());
    let said = refused(&format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslmode=verify-full",
        wire.port()
    ));
    assert!(said.contains("TLS"), "{said}");
    assert!(!wire.has_carried("postgres"), "not even who it is");

    let server = Server::start(Options {
        tls: true,
        ..Options::default()
    })
    .unwrap();
    let wire = Wire::to(server.port());
    let authority = server.authority().display().to_string();
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslrootcert={authority}&sslmode=",
        wire.port()
    );
    let store = Postgres::open(&format!("{url}verify-full")).unwrap();
    store.commit(birth(1)).await.unwrap();
    store.read(agent(1)).await.unwrap();
    drop(store);
    assert!(!wire.has_carried("postgres") && !wire.has_carried("SELECT"));
    refused(&format!("{url}disable"));
    assert!(
        wire.has_carried("postgres"),
        "what is not encrypted would be seen"
    );
}
