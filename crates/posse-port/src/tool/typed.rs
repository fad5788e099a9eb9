//! Tools with a typed input; the model reads the input's doc comments.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use posse_protocol::{Display, RawJson, ToolSpec};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;

use super::{
    FoundFiles, Intent, NO_FILES, Tool, ToolContext, ToolError, ToolOutput, Workspace,
    operated_plainly,
};
use crate::BoxFuture;
use crate::store::OpResult;

/// A tool with a typed input.
pub trait TypedTool: Send + Sync + 'static {
    /// The input. Should refuse unknown fields, so that the model learns of a mistake.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// The name the model calls it by.
    const NAME: &'static str;

    /// Tells the model what the tool does and when to use it.
    fn description(&self) -> Cow<'static, str>;

    /// See [`Tool::intent`].
    fn intent(&self, input: &Self::Input, workspace: &Workspace) -> Result<Intent, ToolError>;

    /// See [`Tool::preview`].
    fn preview(&self, input: &Self::Input, workspace: &Workspace) -> Option<Display> {
        let _ = (input, workspace);
        None
    }

    /// See [`Tool::run`].
    fn run(
        &self,
        input: Self::Input,
        context: ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// See [`Tool::find_files`].
    fn find_files(
        &self,
        part: String,
        context: ToolContext,
    ) -> impl Future<Output = Result<FoundFiles, ToolError>> + Send {
        drop((part, context));
        std::future::ready(Err(ToolError::Tell(NO_FILES.into())))
    }

    /// See [`Tool::operated`].
    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        operated_plainly(results)
    }

    /// See [`Tool::abandon`].
    fn abandon(&self, marker: String) -> impl Future<Output = ()> + Send {
        drop(marker);
        std::future::ready(())
    }
}

/// Wraps a typed tool for the agent.
pub fn typed<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    Arc::new(Typed(Arc::new(tool)))
}

struct Typed<T>(Arc<T>);

impl<T: TypedTool> Tool for Typed<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: T::NAME.to_owned(),
            description: self.0.description().into_owned(),
            input_schema: RawJson::from(schema::<T::Input>().as_value()),
        }
    }

    fn intent(&self, input: &RawJson, workspace: &Workspace) -> Result<Intent, ToolError> {
        self.0.intent(&parse::<T>(input)?, workspace)
    }

    fn preview(&self, input: &RawJson, workspace: &Workspace) -> Option<Display> {
        self.0.preview(&parse::<T>(input).ok()?, workspace)
    }

    fn run(
        &self,
        input: RawJson,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let tool = Arc::clone(&self.0);
        Box::pin(async move { tool.run(parse::<T>(&input)?, context).await })
    }

    fn find_files(
        &self,
        part: String,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<FoundFiles, ToolError>> {
        let tool = Arc::clone(&self.0);
        Box::pin(async move { tool.find_files(part, context).await })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        self.0.operated(results)
    }

    fn abandon(&self, marker: String) -> BoxFuture<'static, ()> {
        let tool = Arc::clone(&self.0);
        Box::pin(async move { tool.abandon(marker).await })
    }
}

/// Returns the JSON schema of an input, as the model sees it.
pub fn schema<I: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<I>();
    // Rust type names mean nothing to the model.
    schema.remove("title");
    schema
}

fn parse<T: TypedTool>(input: &RawJson) -> Result<T::Input, ToolError> {
    read(T::NAME, input)
}

/// Parses the input of the tool called `name`; the error tells the model what is wrong with it.
pub fn read<I: DeserializeOwned>(name: &str, input: &RawJson) -> Result<I, ToolError> {
    serde_json::from_str(input.get()).map_err(|error| {
        // The model needs to know what is wrong, not the position in the text.
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or(&what);
        ToolError::Tell(format!("invalid input for {name}: {what}"))
    })
}
