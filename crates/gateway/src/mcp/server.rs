//! MCP request handlers for all transports; each delegates to the file of its subject.

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tenancy::Scope;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::list_changed;
use super::result::fault;
use super::transport::{McpTransport, gateway_of};
use super::view::{VisibleModules, page};
use super::{builtin, call, completion, prompt, resource, tool};
use crate::state::Gateway;

const INSTRUCTIONS: &str = "Every tool but those that begin with `cognitive_` is a module: it does one thing and \
    answers with an envelope. `ok` says whether the answer holds; `meta.confidence` and `meta.risk` say how far to \
    trust it; `error.suggestion` says what to change before trying again.";

/// Methods with parameters.
const METHODS: [&str; 9] = [
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// One session of a host; with newer clients over HTTP, a single request.
#[derive(Debug)]
pub(super) struct Mcp {
    gateway: Gateway,
    door: McpTransport,
    /// Cancelled with the session; stops its watchers.
    session_end: CancellationToken,
    _guard: DropGuard,
}

impl Mcp {
    pub(super) fn new(gateway: Gateway, door: McpTransport) -> Self {
        let session_end = CancellationToken::new();
        Self {
            gateway,
            door,
            _guard: session_end.clone().drop_guard(),
            session_end,
        }
    }

    /// The modules visible to the caller.
    fn view(&self, context: &RequestContext<RoleServer>) -> Result<VisibleModules, ErrorData> {
        let client = self.door.client(&context.extensions)?;
        let gateway = gateway_of(&context.extensions).unwrap_or_else(|| self.gateway.current());
        Ok(VisibleModules::new(gateway, client))
    }

    /// The same, with the scope `read`.
    fn readable(&self, context: &RequestContext<RoleServer>) -> Result<VisibleModules, ErrorData> {
        let view = self.view(context)?;
        let allowed = view.client.caller.require(Scope::Read);
        allowed.map_err(|denial| fault(denial.into()))?;
        Ok(view)
    }
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("cogn", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        list_changed::notify(self.gateway.current(), context.peer, self.session_end.clone());
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(list_changed::is_subscribed(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        list_changed::listen(self.gateway.current(), context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let view = self.readable(&context)?;
        let modules = view.iter();
        let modules = modules.map(|(name, _, module)| tool::tool(name, module, &view.modules));
        let tools = builtin::tools().into_iter().chain(modules).collect();
        let (tools, next) = page(tools, request)?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let view = self.view(&context)?;
        call::call(&view, request, &context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (resources, next) = page(resource::list(&self.readable(&context)?), request)?;
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resource::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resource::read(&self.readable(&context)?, &request.uri).map(Into::into)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (prompts, next) = page(prompt::list(&self.readable(&context)?), request)?;
        let mut result = ListPromptsResult::with_all_items(prompts);
        result.next_cursor = next;
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let view = self.readable(&context)?;
        let threads = view.gateway.engine().schema_threads().clone();
        let get = move || prompt::get(&view, &request.name, request.arguments.unwrap_or_default());
        let failed = |_| {
            Err(ErrorData::internal_error(
                "the prompt could not be rendered",
                None,
            ))
        };
        threads.run(get).await.unwrap_or_else(failed).map(Into::into)
    }

    /// Requests that the SDK could not decode: invalid parameters of a known method, or an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&method.as_str()) {
            let message = format!("invalid parameters of {method}");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(completion::complete(&self.readable(&context)?, &request))
    }
}
