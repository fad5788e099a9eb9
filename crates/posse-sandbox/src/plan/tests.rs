//! Plans from surroundings that are written down here, without a disk.

use std::collections::BTreeMap;

use super::*;
use crate::layout::Repository;

const FULL: KernelSupport = KernelSupport {
    namespaces: true,
    landlock: 7,
    seccomp: true,
};

fn paths(list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(PathBuf::from).collect()
}

fn confinement(write: &[&str], keep: &[&str], hide: &[&str]) -> Confinement {
    Confinement {
        write: paths(write),
        keep: paths(keep),
        hide: paths(hide),
        ..Confinement::default()
    }
}

/// Surroundings in which exactly these paths exist; a directory's name ends with `/`.
fn surroundings(present: &[&str]) -> Surroundings {
    let present = present.iter().map(|path| {
        let name = path.strip_suffix('/').filter(|name| !name.is_empty());
        let name = name.unwrap_or(path);
        (PathBuf::from(name), path.ends_with('/'))
    });
    Surroundings {
        support: FULL,
        temporary: "/h/tmp/1".into(),
        present: present.collect::<BTreeMap<_, _>>(),
        ..Surroundings::default()
    }
}

fn told(plan: &Plan) -> Vec<String> {
    let mounts = plan.mounts.iter();
    let told = mounts.map(|mount| format!("{:?} {}", mount.kind, mount.path.display()));
    told.collect()
}

#[test]
fn what_is_kept_or_hidden_is_pinned_up_to_its_root() {
    let confinement = confinement(
        &["/w"],
        &["/w/.git/hooks", "/w/sub/deep/.envrc", "/w/absent"],
        &[
            "/h/.ssh",
            "/w/.env",
            "/h/.ssh/inner",
            "/run/x.sock",
            "/tmp/y",
        ],
    );
    let surroundings = surroundings(&[
        "/w/",
        "/w/.git/hooks/",
        "/w/sub/deep/.envrc",
        "/h/.ssh/",
        "/h/.ssh/inner/",
        "/w/.env",
        "/run/x.sock",
        "/tmp/y",
    ]);
    let plan = Plan::new(&confinement, &surroundings).unwrap();
    assert_eq!(
        told(&plan),
        [
            "Hide /h/.ssh",
            "Empty /run",
            "Write /tmp",
            "Write /w",
            "Hide /w/.env",
            "Pin /w/.git",
            "Keep /w/.git/hooks",
            "Pin /w/sub",
            "Pin /w/sub/deep",
            "Keep /w/sub/deep/.envrc",
        ]
    );
    for (path, writable) in [
        ("/", false),
        ("/w", true),
        ("/w/sub", true),
        ("/w/.git/hooks", false),
        ("/w/.env", false),
        ("/tmp", true),
        ("/sys/fs/cgroup", false),
    ] {
        assert_eq!(plan.is_writable(Path::new(path)), writable, "{path}");
    }
}

#[test]
fn git_adds_what_a_commit_needs_and_what_must_stay() {
    let mut surroundings = surroundings(&[
        "/wt/",
        "/wt/.git",
        "/w/.git/objects/",
        "/w/.git/worktrees/wt/",
        "/w/.git/worktrees/wt/gitdir",
        "/w/.git/config",
    ]);
    surroundings.repositories = vec![Repository {
        top: "/wt".into(),
        git: "/w/.git/worktrees/wt".into(),
        write: paths(&["/w/.git/objects", "/w/.git/worktrees/wt"]),
        keep: paths(&["/wt/.git", "/w/.git/worktrees/wt/gitdir", "/w/.git/config"]),
    }];
    let plan = Plan::new(&confinement(&["/wt"], &[], &[]), &surroundings).unwrap();
    assert_eq!(
        told(&plan),
        [
            "Empty /run",
            "Write /tmp",
            "Write /w/.git/objects",
            "Write /w/.git/worktrees/wt",
            "Keep /w/.git/worktrees/wt/gitdir",
            "Write /wt",
            "Keep /wt/.git",
        ]
    );
    // Read-only in plan mode: nothing of git is writable.
    let plan = Plan::new(&confinement(&[], &[], &[]), &surroundings).unwrap();
    assert_eq!(told(&plan), ["Empty /run", "Write /tmp"]);
}

#[test]
fn a_root_beneath_something_hidden_is_shown() {
    let mut confinement = confinement(&["/h/.posse/worktrees/a"], &[], &["/h/.posse"]);
    confinement.show = paths(&["/h/.posse/spill"]);
    let surroundings = surroundings(&["/h/.posse/", "/h/.posse/worktrees/a/", "/h/.posse/spill/"]);
    let plan = Plan::new(&confinement, &surroundings).unwrap();
    assert_eq!(
        told(&plan),
        [
            "Hide /h/.posse",
            "Show /h/.posse/spill",
            "Write /h/.posse/worktrees/a",
            "Empty /run",
            "Write /tmp",
        ]
    );
}

#[test]
fn a_workspace_in_the_temporary_directory_is_seen_if_it_is_to_be_shown() {
    let mut confinement = confinement(&[], &[], &[]);
    confinement.show = paths(&["/tmp/w", "/elsewhere"]);
    let plan = Plan::new(&confinement, &surroundings(&["/tmp/w/", "/elsewhere/"])).unwrap();
    assert_eq!(told(&plan), ["Empty /run", "Write /tmp", "Show /tmp/w"]);
    assert!(!plan.is_writable(Path::new("/tmp/w")));
}

#[test]
fn links_and_other_names_are_guarded_like_what_they_lead_to() {
    let mut surroundings = surroundings(&["/w/", "/dots/ssh/", "/w/.env", "/w/hard"]);
    surroundings.links = BTreeMap::from([("/h/.ssh".into(), "/dots/ssh".into())]);
    surroundings.twins = vec![("/w/hard".into(), "/w/.env".into())];
    let confinement = confinement(&["/w"], &[], &["/h/.ssh", "/w/.env"]);
    let plan = Plan::new(&confinement, &surroundings).unwrap();
    assert_eq!(
        told(&plan),
        [
            "Hide /dots/ssh",
            "Empty /run",
            "Write /tmp",
            "Write /w",
            "Hide /w/.env",
            "Hide /w/hard",
        ]
    );
    surroundings.unfound_twins = paths(&["/w/.env"]);
    assert_eq!(
        Plan::new(&confinement, &surroundings),
        Err(PlanError::Twin("/w/.env".into()))
    );
}

#[test]
fn everything_can_be_writable_but_what_is_kept() {
    let surroundings = surroundings(&["/", "/w/.git/config", "/h/.ssh/"]);
    let confinement = confinement(&["/"], &["/w/.git/config"], &["/h/.ssh"]);
    let plan = Plan::new(&confinement, &surroundings).unwrap();
    assert_eq!(
        told(&plan),
        [
            "Pin /h",
            "Hide /h/.ssh",
            "Empty /run",
            "Pin /w",
            "Pin /w/.git",
            "Keep /w/.git/config",
        ]
    );
    assert!(plan.is_writable(Path::new("/")) && plan.is_writable(Path::new("/var")));
    assert!(!plan.is_writable(Path::new("/sys")) && !plan.is_writable(Path::new("/proc")));
}

#[test]
fn a_weak_kernel_gets_no_plan_that_it_cannot_keep() {
    let present = ["/w/", "/w/.git/hooks/", "/h/.ssh/"];
    let keeping = confinement(&["/w"], &["/w/.git/hooks"], &[]);
    let hiding = confinement(&[], &[], &["/h/.ssh"]);
    let simple = confinement(&["/w"], &[], &[]);
    for (namespaces, landlock, expected) in [
        (true, 7, [true, true, true]),
        (true, 1, [true, true, true]),
        (true, 0, [true, true, true]),
        (false, 3, [false, false, true]),
        (false, 1, [false, false, false]),
        (false, 0, [false, false, false]),
    ] {
        let mut surroundings = surroundings(&present);
        surroundings.support = KernelSupport {
            namespaces,
            landlock,
            seccomp: true,
        };
        let made = [&keeping, &hiding, &simple].map(|confinement| {
            let plan = Plan::new(confinement, &surroundings);
            plan.is_ok_and(|plan| plan.tier() == surroundings.support.tier())
        });
        assert_eq!(made, expected, "{:?}", surroundings.support);
    }
}

#[test]
fn a_root_must_exist() {
    let missing = Plan::new(&confinement(&["/gone"], &[], &[]), &surroundings(&[]));
    assert_eq!(missing, Err(PlanError::NoRoot("/gone".into())));
}

#[test]
fn a_message_brings_all_of_it_and_no_other_is_understood() {
    let mut confinement = confinement(&["/w"], &["/w/.git/hooks"], &["/h/.ssh"]);
    confinement.limits.processes = Some(256);
    let mut surroundings = surroundings(&["/w/", "/w/.git/hooks/", "/h/.ssh/"]);
    surroundings.cgroups = paths(&["/sys/fs/cgroup/a/cgroup.procs"]);
    let plan = Plan::new(&confinement, &surroundings).unwrap();
    let bytes = plan.to_bytes();
    assert_eq!(Plan::from_bytes(&bytes), Ok(plan));
    for length in 0..bytes.len() {
        assert_eq!(Plan::from_bytes(&bytes[..length]), Err(MessageError));
    }
    let longer = [&bytes[..], b"x"].concat();
    assert_eq!(Plan::from_bytes(&longer), Err(MessageError));
    let mut later = bytes.clone();
    later[VERSION.len() - 2] = b'9';
    assert_eq!(Plan::from_bytes(&later), Err(MessageError));
    let mut unknown = bytes;
    unknown[VERSION.len()] = 7;
    assert_eq!(Plan::from_bytes(&unknown), Err(MessageError));
}

#[test]
fn a_plan_of_many_paths_is_made_fast() {
    let names: Vec<String> = (0..200)
        .map(|n| format!("/w/dir{}/keep{n}", n % 20))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut present = names.clone();
    present.push("/w/");
    let surroundings = surroundings(&present);
    let confinement = confinement(&["/w"], &names[..100], &names[100..]);
    let plan = Plan::new(&confinement, &surroundings).unwrap();
    assert_eq!(plan.mounts.len(), 200 + 20 + 3);
}

#[test]
fn programs_in_a_directory_that_is_private_otherwise_are_there() {
    let mut surroundings = surroundings(&["/w/", "/nix/store/system/"]);
    let (link, real) = ("/run/current-system", "/nix/store/system");
    surroundings.links.insert(link.into(), real.into());
    let plan = Plan::new(&confinement(&["/w"], &[], &[]), &surroundings).unwrap();
    let mount = |path: &str| plan.mounts.iter().find(|it| it.path == Path::new(path));
    assert_eq!(mount("/run").unwrap().kind, MountKind::Empty);
    let shown = mount(link).unwrap();
    assert_eq!(
        (shown.kind, shown.source.as_deref()),
        (MountKind::Show, Some(Path::new(real)))
    );
    assert_eq!(Plan::from_bytes(&plan.to_bytes()), Ok(plan));
}
