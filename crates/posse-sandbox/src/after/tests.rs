//! What a command leaves, made by the tests themselves.

use std::process::Command;

use super::*;

struct Scene {
    _directory: tempfile::TempDir,
    root: PathBuf,
    quarantine: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let root = base.join("w");
        fs::create_dir(&root).unwrap();
        Self {
            quarantine: base.join("quarantine"),
            root,
            _directory: directory,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "commands of a test")]
    fn run(&self, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(&self.root);
        for (name, value) in [("GIT_CONFIG_NOSYSTEM", "1"), ("HOME", "/nonexistent")] {
            command.env(name, value);
        }
        assert!(command.status().unwrap().success(), "{script}");
    }

    fn watch(&self) -> Watch {
        let repository = Repository::at(&self.root);
        let names = [
            ".git",
            ".gitmodules",
            ".posse",
            ".claude",
            ".mcp.json",
            ".vscode",
            ".envrc",
            ".husky",
        ];
        Watch::before(
            std::slice::from_ref(&self.root),
            repository.as_slice(),
            &names,
        )
    }

    /// Returns the names beneath the root that were moved away.
    fn found(&self, watch: &Watch) -> Vec<String> {
        let found = watch.after(&self.quarantine);
        let names = found.into_iter().map(|finding| {
            assert!(
                finding
                    .moved_to
                    .is_some_and(|it| fs::symlink_metadata(it).is_ok())
            );
            assert!(fs::symlink_metadata(&finding.path).is_err());
            let name = finding.path.strip_prefix(&self.root).unwrap();
            name.display().to_string()
        });
        names.collect()
    }
}

const INIT: &str = "git init -q .; git config user.name a; git config user.email a@b; echo a >f; \
     git add f; git commit -qm a";

#[test]
fn what_appears_is_moved_away_and_the_rest_stays() {
    let scene = Scene::new();
    scene.run(INIT);
    scene.run("mkdir .vscode; touch .vscode/old");
    let watch = scene.watch();
    scene.run("touch g .envrc .vscode/new; echo {} >.mcp.json; echo ../evil >.git/commondir");
    assert_eq!(
        scene.found(&watch),
        [".mcp.json", ".envrc", ".git/commondir"]
    );
    assert!(scene.root.join("g").exists() && scene.root.join(".vscode/new").exists());
    assert_eq!(scene.found(&watch), Vec::<String>::new());
}

#[test]
fn a_link_that_leads_elsewhere_now_is_noticed() {
    let scene = Scene::new();
    scene.run("mkdir real; ln -s real .claude");
    let watch = scene.watch();
    assert_eq!(scene.found(&watch), Vec::<String>::new());
    scene.run("rm .claude; ln -s other .claude");
    assert_eq!(scene.found(&watch), [".claude"]);
}

#[test]
fn a_root_does_not_become_a_repository() {
    let scene = Scene::new();
    let watch = scene.watch();
    scene.run("mkdir objects refs; echo ref >HEAD; echo x >config");
    assert_eq!(scene.found(&watch), ["HEAD", "config", "objects", "refs"]);
}

#[test]
fn a_planted_repository_is_found_in_every_version_of_the_index() {
    for version in ["2", "3", "4"] {
        let scene = Scene::new();
        scene.run(INIT);
        scene.run("mkdir -p deep/er; touch deep/er/a deep/er/b; git add deep");
        let watch = scene.watch();
        scene.run("git init -q deep/sub; git -C deep/sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m s");
        scene.run("git add deep/sub 2>/dev/null; touch f2; git add -N f2");
        scene.run(&format!("git update-index --index-version {version}"));
        assert_eq!(scene.found(&watch), ["deep/sub/.git"], "version {version}");
    }
}

#[test]
fn a_link_does_not_lead_the_check_to_other_directories() {
    let scene = Scene::new();
    scene.run(INIT);
    scene.run("git init -q ../other");
    let watch = scene.watch();
    scene.run("git init -q sub; git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m s; git add sub 2>/dev/null; rm -rf sub; ln -s ../other sub");
    assert_eq!(scene.found(&watch), Vec::<String>::new());
    assert!(scene.root.join("../other/.git/HEAD").exists());
}

#[test]
fn what_is_no_index_has_no_repositories() {
    assert_eq!(gitlinks(b""), None);
    assert_eq!(gitlinks(b"DIRC\0\0\0\x02\0\0\0\x01short"), None);
    assert_eq!(gitlinks(b"DIRC\0\0\0\x09\0\0\0\0"), None);
}
