//! Servers that agents use. Agents for which the declared servers come to the same share one set.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use posse_permission::{Policy, Rights};
use posse_port::Ports;
use posse_port::clock::Clock;
use posse_port::process::ProcessBoundary;
use posse_port::servers::{
    ServedPrompt, ServedTool, Server, ServerFacts, ServerPlace, ServerState,
};
use posse_protocol::{AgentId, ToolSpec};

use crate::definition::server::{DeclaredServer, ServerSet, ServerSource, ToolNames, tool_name};
use crate::definition::terms::Terms;
use crate::definition::tool_name::{OF_SERVERS, means};
use crate::live::boundary;
use crate::prompt::served::{ListedServer, Presence, entry};

/// How long the first call of an agent waits for servers that are being connected.
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// The sets of servers that agents of a session use.
#[derive(Default)]
pub(crate) struct SessionServers {
    /// By the checkout, where it matters.
    sets: Mutex<HashMap<Option<PathBuf>, Vec<Weak<UsedServers>>>>,
    /// Those of the main agent, which hooks call.
    of_main: OnceLock<AgentServers>,
}

/// For whom servers are connected.
pub(crate) struct ServedAgent<'a> {
    /// The main agent of the session.
    pub(crate) session: AgentId,
    /// The rights of the session's main agent.
    pub(crate) session_rights: &'a Rights,
    /// The agent.
    pub(crate) agent: AgentId,
    /// Its rights.
    pub(crate) rights: &'a Rights,
    /// Servers that only agents of its type have.
    pub(crate) own: &'a [Arc<DeclaredServer>],
}

impl SessionServers {
    /// Returns the servers of an agent; none if none are declared. Those that are not there yet begin
    /// to connect.
    pub(crate) fn of(
        &self,
        (ports, lists): (&Ports, &ServerLists),
        book: &ServerSet,
        who: &ServedAgent<'_>,
    ) -> Option<Arc<UsedServers>> {
        let checkout = checkout(who.rights);
        let declared = declared(book, who.own, checkout);
        if declared.is_empty() {
            return None;
        }
        let place = declared
            .iter()
            .any(|server| server.names_worktree())
            .then(|| checkout.to_owned());
        let agent = declared
            .iter()
            .any(|server| !server.is_shared)
            .then_some(who.agent);
        let same = |set: &Arc<UsedServers>| {
            let mut both = set.list.members.iter().zip(&declared);
            set.agent == agent
                && set.list.members.len() == declared.len()
                && both.all(|(member, server)| Arc::ptr_eq(&member.declared, server))
        };
        let mut sets = self.lock();
        let here = sets.entry(place).or_default();
        here.retain(|set| set.strong_count() > 0);
        if let Some(set) = here.iter().filter_map(Weak::upgrade).find(same) {
            return Some(set);
        }
        let connect = |declared: Arc<DeclaredServer>| Member {
            server: connect(ports, book, who, &declared),
            declared,
        };
        let set = Arc::new(UsedServers {
            list: lists.of(declared.into_iter().map(connect).collect()),
            agent,
            since: ports.clock.now(),
        });
        here.push(Arc::downgrade(&set));
        Some(set)
    }

    /// Keeps those of the main agent for hooks.
    pub(crate) fn set_of_main(&self, servers: &AgentServers) {
        let _ = self.of_main.set(servers.clone());
    }

    /// Returns those of the main agent; none if it has none, or does not live here.
    pub(crate) fn of_main(&self) -> Option<AgentServers> {
        self.of_main.get().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<PathBuf>, Vec<Weak<UsedServers>>>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the servers that may be started: an agent's own count instead of others with their names.
fn declared(
    book: &ServerSet,
    own: &[Arc<DeclaredServer>],
    checkout: &Path,
) -> Vec<Arc<DeclaredServer>> {
    let admitted = |it: &&Arc<DeclaredServer>| book.admits(it, checkout);
    let own: Vec<_> = own.iter().filter(admitted).collect();
    let replaced = |server: &&Arc<DeclaredServer>| own.iter().any(|it| it.name == server.name);
    let session = book.active().filter(|server| !replaced(server));
    session.chain(own.iter().copied()).cloned().collect()
}

/// Returns the top of the checkout that an agent works in.
fn checkout(rights: &Rights) -> &Path {
    let workspace = rights.workspace();
    let top = workspace
        .roots
        .iter()
        .find(|root| workspace.cwd.starts_with(root));
    top.unwrap_or(&workspace.cwd)
}

/// Connects a declared server for an agent.
fn connect(
    ports: &Ports,
    book: &ServerSet,
    who: &ServedAgent<'_>,
    declared: &DeclaredServer,
) -> Arc<dyn Server> {
    let rights = match declared.names_worktree() || !declared.is_shared {
        true => who.rights,
        false => who.session_rights,
    };
    let directory = checkout(rights);
    let resolved = book.resolve(declared, directory);
    let place = ServerPlace {
        session: who.session,
        agent: who.agent,
        directory: directory.to_owned(),
        boundary: match declared.origin.of_repository {
            true => boundary::of_repository(rights, "a server of the repository"),
            false => ProcessBoundary::None,
        },
        clock: Arc::clone(&ports.clock),
    };
    ports.servers.connect(&Arc::new(resolved.entry), &place)
}

/// Servers that some agents use.
pub(crate) struct UsedServers {
    list: Arc<ServerList>,
    /// The only agent that has it, if there is one.
    agent: Option<AgentId>,
    /// When it was made, by the monotonic clock.
    since: Duration,
}

/// The lists of servers of this process, by where the servers are in memory. Sessions with the same
/// servers share a list.
#[derive(Default)]
pub(crate) struct ServerLists(Mutex<HashMap<Vec<usize>, Vec<Weak<ServerList>>>>);

/// Servers, and what they have.
struct ServerList {
    members: Vec<Member>,
    /// What they were when somebody looked last.
    offered: Mutex<Offered>,
}

impl ServerLists {
    /// Returns the list of these servers.
    fn of(&self, members: Vec<Member>) -> Arc<ServerList> {
        let places: Vec<usize> = members.iter().map(Member::place).collect();
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |list: &Arc<ServerList>| {
            let mut both = list.members.iter().zip(&members);
            list.members.len() == members.len() && both.all(|(one, other)| one.is_same(other))
        };
        let known = lists.get(&places).into_iter().flatten();
        if let Some(list) = known.filter_map(Weak::upgrade).find(same) {
            return list;
        }
        lists.retain(|_, lists| {
            lists.retain(|list| list.strong_count() > 0);
            !lists.is_empty()
        });
        let list = Arc::new(ServerList {
            members,
            offered: Mutex::default(),
        });
        lists.entry(places).or_default().push(Arc::downgrade(&list));
        list
    }
}

/// What servers had when somebody looked last.
#[derive(Default)]
struct Offered {
    /// A tool keeps its name while it comes and goes.
    names: ToolNames,
    last: Option<Arc<ToolsNow>>,
}

/// Whether servers are there that an agent needs.
pub(crate) enum Required {
    /// They are.
    Here,
    /// Some are still being connected.
    Coming,
    /// Some will not be there: which, and why.
    Missing(Vec<String>),
}

/// A server, and what it was declared as.
struct Member {
    declared: Arc<DeclaredServer>,
    server: Arc<dyn Server>,
}

impl Member {
    /// Returns where the server is in memory.
    fn place(&self) -> usize {
        Arc::as_ptr(&self.server).addr()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.place() == other.place() && self.declared == other.declared
    }
}

impl UsedServers {
    /// Returns true if one is still being connected.
    fn is_pending(&self) -> bool {
        let pending = |member: &Member| matches!(member.server.state(), ServerState::Pending);
        self.list.members.iter().any(pending)
    }

    /// Waits until none is being connected any more.
    pub(crate) async fn settled(&self) {
        for member in &self.list.members {
            member.server.settled().await;
        }
    }

    /// Waits until one that is being connected is not any more.
    pub(crate) async fn one_settled(&self) {
        let pending = self.list.members.iter();
        let pending = pending.filter(|it| matches!(it.server.state(), ServerState::Pending));
        let mut settling: Vec<_> = pending.map(|member| member.server.settled()).collect();
        poll_fn(|context| {
            let mut polls = settling.iter_mut().map(|it| it.as_mut().poll(context));
            match polls.len() == 0 || polls.any(|poll| poll.is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Returns true if agents that would begin now wait for one that is still being connected.
    pub(crate) fn is_waited_for(&self, clock: &dyn Clock) -> bool {
        clock.now() < self.since + FIRST_WAIT && self.is_pending()
    }

    /// Waits until none is being connected any more, or they have had the time for it.
    pub(crate) async fn first_wait(&self, clock: &dyn Clock) {
        if self.is_waited_for(clock) {
            let left = (self.since + FIRST_WAIT).saturating_sub(clock.now());
            tokio::select! {
                biased;
                () = self.settled() => {}
                () = clock.sleep(left) => {}
            }
        }
    }

    /// Returns whether those are there, with tools, that names or patterns mean.
    pub(crate) fn required(&self, patterns: &[String]) -> Required {
        let (mut coming, mut missing) = (false, Vec::new());
        for pattern in patterns {
            let meant: Vec<_> = self.meant(pattern).map(|it| it.server.state()).collect();
            let has_tools = |state: &ServerState| match state {
                ServerState::Connected(facts) => !facts.tools.is_empty(),
                _ => false,
            };
            if meant.iter().any(has_tools) {
                continue;
            }
            if meant.iter().any(|it| matches!(it, ServerState::Pending)) {
                coming = true;
                continue;
            }
            missing.push(match meant.first() {
                None => format!("{pattern} (none is declared)"),
                Some(ServerState::Failed { why, .. }) => format!("{pattern} ({why})"),
                Some(_) => format!("{pattern} (it has no tools)"),
            });
        }
        match (missing.is_empty(), coming) {
            (false, _) => Required::Missing(missing),
            (true, true) => Required::Coming,
            (true, false) => Required::Here,
        }
    }

    /// Returns those names and patterns that mean only servers which are still being connected.
    pub(crate) fn coming(&self, patterns: &[String]) -> Vec<String> {
        let is_coming = |pattern: &&String| {
            self.meant(pattern)
                .all(|it| matches!(it.server.state(), ServerState::Pending))
        };
        patterns.iter().filter(is_coming).cloned().collect()
    }

    /// Returns the servers that a name or a pattern means.
    fn meant(&self, pattern: &str) -> impl Iterator<Item = &Member> {
        let beginning = pattern.strip_suffix('*');
        self.list.members.iter().filter(move |it| match beginning {
            Some(beginning) => it.declared.name.starts_with(beginning),
            None => it.declared.name == pattern,
        })
    }

    /// Returns those of these names.
    pub(crate) fn named(&self, names: &[String]) -> impl Iterator<Item = (&str, &Arc<dyn Server>)> {
        let meant = |member: &&Member| names.contains(&member.declared.name);
        let members = self.list.members.iter().filter(meant);
        members.map(|it| (it.declared.name.as_str(), &it.server))
    }

    /// Returns the servers and their tools as they are now. The same pointer is the same list.
    pub(crate) fn now(&self) -> Arc<ToolsNow> {
        let ServerList { members, offered } = &*self.list;
        let states: Vec<_> = members.iter().map(|it| it.server.state()).collect();
        let mut offered = offered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = offered.last.as_ref().filter(|it| it.is_of(&states)) {
            return Arc::clone(last);
        }
        let fresh = Arc::new(ToolsNow::of(members, states, &mut offered.names));
        offered.last = Some(Arc::clone(&fresh));
        fresh
    }
}

/// Servers and their tools as of one moment.
pub(crate) struct ToolsNow {
    servers: Vec<ServerNow>,
    tools: Vec<NamedTool>,
    by_name: HashMap<String, usize>,
}

/// A server as of one moment.
struct ServerNow {
    declared: Arc<DeclaredServer>,
    server: Arc<dyn Server>,
    state: ServerState,
}

/// A tool, as agents call it.
pub(crate) struct NamedTool {
    /// Its name for models.
    pub(crate) name: String,
    server: usize,
    facts: Arc<ServerFacts>,
    at: usize,
    /// True if its server wants it to be known from the beginning.
    is_eager: bool,
}

impl NamedTool {
    /// Returns what the server says of it.
    pub(crate) fn served(&self) -> Option<&ServedTool> {
        self.facts.tools.get(self.at)
    }

    /// Returns its definition for models.
    pub(crate) fn spec(&self) -> Option<ToolSpec> {
        let spec = self.served()?.spec.clone();
        let name = self.name.clone();
        Some(ToolSpec { name, ..spec })
    }
}

impl ToolsNow {
    fn of(members: &[Member], states: Vec<ServerState>, names: &mut ToolNames) -> Self {
        let mut tools = Vec::new();
        for (server, (member, state)) in members.iter().zip(&states).enumerate() {
            let Some(facts) = state.facts() else { continue };
            for (at, tool) in facts.tools.iter().enumerate() {
                tools.push(NamedTool {
                    name: names.name(&member.declared.name, &tool.name).name,
                    server,
                    facts: Arc::clone(facts),
                    at,
                    is_eager: member.declared.always_load || tool.always_loaded,
                });
            }
        }
        let by_name = tools.iter().enumerate();
        let by_name = by_name.map(|(at, tool)| (tool.name.clone(), at)).collect();
        let server_now = |(member, state): (&Member, ServerState)| ServerNow {
            declared: Arc::clone(&member.declared),
            server: Arc::clone(&member.server),
            state,
        };
        Self {
            servers: members.iter().zip(states).map(server_now).collect(),
            tools,
            by_name,
        }
    }

    /// Returns true if it was made of the same states.
    fn is_of(&self, states: &[ServerState]) -> bool {
        let same_facts = |a: Option<&Arc<ServerFacts>>, b: Option<&Arc<ServerFacts>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let same = |(now, state): (&ServerNow, &ServerState)| {
            let same_state = match (&now.state, state) {
                (ServerState::Failed { why: a, .. }, ServerState::Failed { why: b, .. }) => a == b,
                (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
            };
            same_state && same_facts(now.state.facts(), state.facts())
        };
        self.servers.len() == states.len() && self.servers.iter().zip(states).all(same)
    }

    /// Returns the tool of this name, and its server.
    pub(crate) fn tool(&self, name: &str) -> Option<(&NamedTool, &Arc<dyn Server>)> {
        let tool = self.find(name)?;
        Some((tool, &self.servers.get(tool.server)?.server))
    }

    fn find(&self, name: &str) -> Option<&NamedTool> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// Returns what a model is told of each server, with the tools that `has_to_load` keeps.
    fn listed(&self, has_to_load: impl Fn(&NamedTool) -> bool) -> Vec<(String, String)> {
        let listed = |(number, now): (usize, &ServerNow)| {
            let tools = self.tools.iter();
            let tools = tools.filter(|it| it.server == number && has_to_load(it));
            let tools: Vec<_> = tools.map(|it| it.name.clone()).collect();
            let facts = now.state.facts();
            let listed = ListedServer {
                name: &now.declared.name,
                presence: match &now.state {
                    ServerState::Pending => Presence::Coming,
                    ServerState::Connected(_) => Presence::Here,
                    ServerState::Failed { why, .. } => Presence::Away(why),
                },
                tools: &tools,
                about: facts.and_then(|facts| facts.instructions.as_deref()),
            };
            (now.declared.name.clone(), entry(&listed))
        };
        self.servers.iter().enumerate().map(listed).collect()
    }
}

/// The servers of an agent, and which of their tools it has.
#[derive(Clone)]
pub(crate) struct AgentServers {
    /// The servers.
    pub(crate) set: Arc<UsedServers>,
    /// The only tools of servers that it has; none for all.
    only: Option<Arc<[String]>>,
    /// Those that it never has.
    never: Arc<[String]>,
    /// Names of those that its preamble has, from its birth on.
    begun_with: Arc<OnceLock<HashSet<String>>>,
}

impl AgentServers {
    /// Returns the servers of an agent with these terms; none for a main agent.
    pub(crate) fn new(set: Arc<UsedServers>, terms: Option<&Terms>) -> Self {
        let of_servers = |names: &[String]| {
            let names = names.iter().filter(|name| name.starts_with(OF_SERVERS));
            names.cloned().collect()
        };
        Self {
            set,
            only: terms
                .and_then(|terms| terms.tools.as_deref())
                .map(of_servers),
            never: terms
                .map(|terms| of_servers(&terms.disallowed))
                .unwrap_or_default(),
            begun_with: Arc::default(),
        }
    }

    /// Takes note of the preamble that the agent is born with. What it has not is loaded later, even
    /// if its server wants it to be known from the beginning.
    pub(crate) fn begin_with(&self, preamble: &[u8]) {
        let _ = self.begun_with.set(served_names(preamble));
    }

    /// Returns the definitions that its model knows from the beginning, if it is born now.
    pub(crate) fn known(&self, policy: &Policy) -> Vec<ToolSpec> {
        let now = self.set.now();
        let tools = now.tools.iter().filter(|tool| tool.is_eager);
        let tools = tools.filter(|tool| self.may_have(&tool.name, policy));
        tools.filter_map(NamedTool::spec).collect()
    }

    /// Returns the definitions that its model has to load.
    pub(crate) fn deferred(&self, policy: &Policy) -> Vec<ToolSpec> {
        let now = self.set.now();
        let tools = now.tools.iter();
        let tools = tools.filter(|tool| self.has_to_load(tool, policy));
        tools.filter_map(NamedTool::spec).collect()
    }

    /// Returns the names of all that it may have.
    pub(crate) fn tools(&self, policy: &Policy) -> Vec<String> {
        let now = self.set.now();
        let names = now.tools.iter().map(|tool| &tool.name);
        let names = names.filter(|name| self.may_have(name, policy));
        names.cloned().collect()
    }

    /// Returns what its model is told of each server.
    pub(crate) fn listed(&self, policy: &Policy) -> Vec<(String, String)> {
        let now = self.set.now();
        now.listed(|tool| self.has_to_load(tool, policy))
    }

    /// Returns the server of a tool, and who has declared it.
    pub(crate) fn origin(&self, tool: &str) -> Option<(String, ServerSource)> {
        let now = self.set.now();
        let server = now.servers.get(now.find(tool)?.server)?;
        let declared = &server.declared;
        Some((declared.name.clone(), declared.origin.source))
    }

    /// Returns the servers that the agent may use, with their names.
    pub(crate) fn usable(&self, policy: &Policy) -> Vec<(&str, &Arc<dyn Server>)> {
        let members = self.set.list.members.iter();
        let named = members.map(|it| (it.declared.name.as_str(), &it.server));
        named
            // Its name before any tool's: rules about all of them fit, and rules about one do not.
            .filter(|(name, _)| self.may_have(&tool_name(name, ""), policy))
            .collect()
    }

    /// Returns the prompt that a person means by `mcp__SERVER__PROMPT`.
    pub(crate) fn prompt(&self, name: &str, policy: &Policy) -> Option<FoundPrompt> {
        let mut prompts = self.prompts(policy).into_iter();
        prompts.find(|found| found.name == name)
    }

    /// Returns all prompts.
    pub(crate) fn prompts(&self, policy: &Policy) -> Vec<FoundPrompt> {
        let found = |(server, at): (&str, &Arc<dyn Server>)| {
            let served = at.state().facts().map(|facts| facts.prompts.clone());
            let prompts = served.unwrap_or_default().into_iter();
            let found = prompts.map(|prompt| FoundPrompt {
                name: tool_name(server, &prompt.name),
                server: server.to_owned(),
                at: Arc::clone(at),
                prompt,
            });
            found.collect::<Vec<_>>()
        };
        self.usable(policy).into_iter().flat_map(found).collect()
    }

    /// Returns those that cannot be connected, and why.
    pub(crate) fn failures(&self) -> Vec<(String, String)> {
        let now = self.set.now();
        let failure = |it: &ServerNow| match &it.state {
            ServerState::Failed { why, .. } => Some((it.declared.name.clone(), why.clone())),
            _ => None,
        };
        now.servers.iter().filter_map(failure).collect()
    }

    /// Returns true if its model has to load a tool that it may have.
    fn has_to_load(&self, tool: &NamedTool, policy: &Policy) -> bool {
        let is_known = match self.begun_with.get() {
            Some(names) => names.contains(&tool.name),
            None => tool.is_eager,
        };
        !is_known && self.may_have(&tool.name, policy)
    }

    /// Returns true if the agent may have a tool, by its terms and by rules.
    pub(crate) fn may_have(&self, tool: &str, policy: &Policy) -> bool {
        let named = |names: &[String]| names.iter().any(|name| means(name, tool));
        self.only.as_deref().is_none_or(named) && !named(&self.never) && !policy.forbids_tool(tool)
    }
}

/// The servers of a session, for front ends.
#[derive(Clone, Default)]
pub struct ServerWatch(Option<WatchedServers>);

/// Servers, and the rights of the agent that has them.
#[derive(Clone)]
struct WatchedServers {
    servers: AgentServers,
    rights: Rights,
    clock: Arc<dyn Clock>,
}

impl ServerWatch {
    /// Returns those of an agent.
    pub(crate) fn new(
        servers: Option<&AgentServers>,
        rights: &Rights,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self(servers.map(|servers| WatchedServers {
            servers: servers.clone(),
            rights: rights.clone(),
            clock: Arc::clone(clock),
        }))
    }

    /// Waits until they have connected or failed to, or the first request does not wait any longer.
    pub async fn first_wait(&self) {
        if let Some(watched) = &self.0 {
            watched.servers.set.first_wait(&*watched.clock).await;
        }
    }

    /// Returns their names, and what they are now.
    pub fn now(&self) -> Vec<(String, ServerState)> {
        let members = self.0.iter().flat_map(|it| &it.servers.set.list.members);
        let now = members.map(|it| (it.declared.name.clone(), it.server.state()));
        now.collect()
    }

    /// Returns their prompts as they are now, by the names that a person calls them by.
    pub fn prompts(&self) -> Vec<(String, ServedPrompt)> {
        let watched = self.0.iter();
        let prompts = watched.flat_map(|it| it.servers.prompts(&it.rights.policy()));
        prompts.map(|it| (it.name, it.prompt)).collect()
    }

    /// Returns the names of the tools that the agent may have now.
    pub fn tools(&self) -> Vec<String> {
        let watched = self.0.iter();
        let tools = watched.map(|it| it.servers.tools(&it.rights.policy()));
        tools.flatten().collect()
    }
}

/// A prompt of a server.
pub(crate) struct FoundPrompt {
    /// The name that a person calls it by.
    pub(crate) name: String,
    /// The name of its server.
    pub(crate) server: String,
    /// Its server.
    pub(crate) at: Arc<dyn Server>,
    /// What it says of itself.
    pub(crate) prompt: ServedPrompt,
}

impl fmt::Debug for ServerWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.now()).finish()
    }
}

/// Returns the names of servers' tools that an encoded preamble has. In the texts of a preamble each
/// quotation mark has a backslash before it.
fn served_names(preamble: &[u8]) -> HashSet<String> {
    let text = String::from_utf8_lossy(preamble);
    let beginning = format!("\"name\":\"{OF_SERVERS}");
    let names = text.split(beginning.as_str()).skip(1);
    let names = names.filter_map(|rest| rest.split_once('"'));
    names
        .map(|(name, _)| format!("{OF_SERVERS}{name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::served_names;

    #[test]
    fn tools_of_a_preamble_are_found() {
        let preamble = br#"{"system":"say \"name\":\"mcp__no__no\"","tools":[{"name":"Read"},
            {"name":"mcp__a__x","description":"\"name\":\"mcp__a__y\""},{"name":"mcp__b__x"}]}"#;
        let mut found: Vec<_> = served_names(preamble).into_iter().collect();
        found.sort();
        assert_eq!(found, ["mcp__a__x", "mcp__b__x"]);
    }
}
