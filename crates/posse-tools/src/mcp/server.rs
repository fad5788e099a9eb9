//! A server, as agents have it.

use std::sync::Arc;

use posse_port::BoxFuture;
use posse_port::servers::{
    PromptMessage, PushTaker, ServedResource, Server, ServerAnswer, ServerCall, ServerFailure,
    ServerState,
};
use posse_protocol::ToolContent;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::make_call;
use super::kept_server::KeptServer;
use super::resources;

/// A server. It ends when nobody has it any more.
pub(super) struct McpServer {
    pub(super) core: Arc<KeptServer>,
    /// Ends it when the last one is dropped.
    life: Arc<DropGuard>,
}

impl McpServer {
    pub(super) fn new(core: Arc<KeptServer>, life: CancellationToken) -> Self {
        Self {
            core,
            life: Arc::new(life.drop_guard()),
        }
    }

    /// Does something that keeps it until it is done.
    fn work<T, F>(&self, work: impl FnOnce(Arc<KeptServer>) -> F) -> BoxFuture<'static, T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let life = Arc::clone(&self.life);
        let work = work(Arc::clone(&self.core));
        Box::pin(async move {
            let done = work.await;
            drop(life);
            done
        })
    }
}

impl Server for McpServer {
    fn state(&self) -> ServerState {
        self.core.state()
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.core.settled())
    }

    fn call(&self, call: ServerCall) -> BoxFuture<'static, Result<ServerAnswer, ServerFailure>> {
        self.work(|core| async move { make_call(&core, call).await })
    }

    fn list_resources(&self) -> BoxFuture<'static, Result<Vec<ServedResource>, ServerFailure>> {
        self.work(|core| async move { resources::list_resources(&core).await })
    }

    fn push_to(&self, taker: &Arc<dyn PushTaker>) {
        self.core.target.takers.add(taker);
    }

    fn read_resource(
        &self,
        uri: String,
    ) -> BoxFuture<'static, Result<Vec<ToolContent>, ServerFailure>> {
        self.work(|core| async move { resources::read_resource(&core, uri).await })
    }

    fn get_prompt(
        &self,
        name: String,
        arguments: Vec<(String, String)>,
    ) -> BoxFuture<'static, Result<Vec<PromptMessage>, ServerFailure>> {
        self.work(|core| async move { resources::get_prompt(&core, name, arguments).await })
    }
}
