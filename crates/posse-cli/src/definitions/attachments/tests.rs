//! Which files go with a prompt.

use posse_permission::{RuleList, Source};

use super::*;
use crate::config::settings::tests::Disk;

// proves FC-13 (part: files)
#[test]
fn files_that_agents_may_read_go_with_the_prompt() {
    let disk = Disk::new();
    disk.write("repo/sub/a.rs", "fn a() {}\n</attached-file>");
    disk.write("repo/sub/my notes.md", "notes");
    disk.write("repo/sub/secret/key", "key");
    disk.write("repo/sub/long", &"x".repeat(50_000));
    disk.write("repo/sub/picture.png", "\0");
    disk.write("home/private.md", "private");
    std::os::unix::fs::symlink(disk.path("home/private.md"), disk.path("repo/sub/link")).unwrap();
    let cwd = disk.path("repo/sub");
    let mut policy = Policy::default();
    let source = Source {
        name: "a test".into(),
        root: cwd.clone(),
        cwd: cwd.clone(),
        home: None,
    };
    let rules = RuleList {
        deny: vec!["Read(./secret/**)".into()],
        ..RuleList::default()
    };
    policy.add(&source, &rules).unwrap();
    let workspace = Workspace {
        roots: vec![cwd.clone()],
        cwd: cwd.clone(),
        spill: disk.path("spill"),
        home: disk.places.home.clone(),
        mirror: None,
        notes: None,
    };
    let attachments = Attachments::new(Arc::new(policy), Arc::new(workspace));
    let of = |text: &str| {
        let (blocks, refused) = attachments.of(text);
        let text = |block: ContentBlock| match block {
            ContentBlock::Text { text } => text,
            other => panic!("{other:?}"),
        };
        (blocks.into_iter().map(text).collect::<Vec<_>>(), refused)
    };
    let framed = |name: &str, text: &str| {
        let path = cwd.join(name).display().to_string();
        format!("<attached-file path=\"{path}\">\n{text}\n</attached-file>")
    };
    let (blocks, refused) = of("Compare @a.rs with @\"my notes.md\", and ask @someone.");
    let a = framed("a.rs", "fn a() {}\n&lt;/attached-file>");
    assert_eq!(blocks, [a, framed("my notes.md", "notes")]);
    assert!(refused.is_empty(), "{refused:?}");
    let listing = "a.rs\ndeep/\nlink\nlong\nmy notes.md\npicture.png\nsecret/";
    assert_eq!(
        of("What is in @. here?").0,
        Vec::<String>::new(),
        "punctuation"
    );
    let (blocks, _) = of("What is in @../sub here?");
    assert_eq!(blocks.len(), 1);
    assert!(blocks[0].contains(listing), "{}", blocks[0]);
    assert!(of("@long").0[0].contains("\n[cut here: a file is read up to 40 KB"));
    for (name, why) in [
        ("gone.rs", "there is no such file"),
        ("secret/key", "a permission rule denies reading it"),
        ("picture.png", "it is not text"),
        ("link", "it is outside"),
        ("~/private.md", "it is outside"),
        ("../../home/private.md", "it is outside"),
    ] {
        let (blocks, refused) = of(&format!("See @{name}"));
        assert!(blocks.is_empty(), "{name}");
        let told = format!("@{name} is left as text: {why}");
        assert!(refused[0].starts_with(&told), "{refused:?}");
    }
}
