//! Checks requests of clients and turns them into submissions for the scheduler.

use std::path::PathBuf;
use std::sync::Arc;

use sandbox::{ByteSize, ExecutionId, Request, Stdin};
use sandbox_api::{Code, ExecuteRequest, Problem};
use sandbox_scheduler::{DecodedRequest, Identity, RequestDecoder, Sandboxes, Submission};
use sandbox_store::{Idempotency, NewCallback};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::convert::{code_size, convert, refusal};
use super::stdin::{StdinSender, StdinStreams};
use super::toolchains_seen::ToolchainsSeen;
use super::workspace;
use crate::callbacks::{AddressPolicy, parse_destination};
use crate::config::{Config, Packages};
use crate::environments::directory_of;
use crate::policy::{Caps, NetworkPermission, SharedCaches, permissions};
use crate::problems::invalid;

/// Checks requests against the operator's policy.
pub(super) struct Requests {
    sandboxes: Arc<Sandboxes>,
    max_code: ByteSize,
    caps: Caps,
    caches: SharedCaches,
    packages: Packages,
    /// The directory of the clients' environments.
    environments: PathBuf,
    network: NetworkPermission,
    callback_allow: AddressPolicy,
    toolchains_seen: ToolchainsSeen,
    stdin: StdinStreams,
    /// Templates are filled one at a time, which bounds their memory together.
    templates: Semaphore,
}

impl Requests {
    pub(super) fn new(config: &Config, sandboxes: Arc<Sandboxes>) -> Self {
        Self {
            sandboxes,
            max_code: config.max_code,
            caps: config.caps,
            caches: config.shared_caches,
            packages: config.packages,
            environments: config.environments_directory(),
            network: config.network.clone(),
            callback_allow: config.callback_allow.clone(),
            toolchains_seen: ToolchainsSeen::default(),
            stdin: StdinStreams::default(),
            templates: Semaphore::new(1),
        }
    }

    /// The client's side of an execution's standard input, for its owner and once.
    pub(super) fn take_stdin(&self, id: &str, owner: Option<&str>) -> Option<StdinSender> {
        self.stdin.take(id, owner)
    }

    /// Keeps the standard input of an accepted execution.
    pub(super) fn accept_stdin(&self, id: &str) {
        self.stdin.accept(id);
    }

    /// Closes the standard input of an execution that has ended.
    pub(super) fn close_stdin(&self, id: &str) {
        self.stdin.close(id);
    }

    /// Checks a request of this client.
    pub(super) async fn check(
        self: &Arc<Self>,
        request: ExecuteRequest,
        client: &Identity,
        idempotency: Option<Idempotency>,
    ) -> Result<Submission, Problem> {
        permissions::check(&request, client)?;
        if code_size(&request) > self.max_code.as_usize() {
            let reason = format!("the code and files are larger than {}", self.max_code);
            return Err(Problem::new(Code::CodeTooLarge, reason));
        }
        self.caps.check(&request)?;
        if self.packages == Packages::Off && !request.packages.is_empty() {
            let reason = "this server fetches none: its setting 'packages' is off";
            return Err(invalid("packages", reason));
        }
        let callback = self.callback(&request)?;
        let is_toolchain_seen = self.toolchains_seen.is_quick_to_check(&request);
        let owner = client.key.clone();
        let submission = self.convert(request, owner, is_toolchain_seen).await?;
        Ok(Submission { callback, idempotency, is_toolchain_seen, ..submission })
    }

    fn callback(&self, request: &ExecuteRequest) -> Result<Option<NewCallback>, Problem> {
        let Some(url) = &request.callback_url else {
            return Ok(None);
        };
        let callback = parse_destination(url, &self.callback_allow);
        callback.map(Some).map_err(|error| invalid("callback_url", error))
    }

    /// Converts a request on a thread that may block, unless it is quick: large requests take time, and the toolchain
    /// of a new language is detected on the host.
    async fn convert(
        self: &Arc<Self>,
        request: ExecuteRequest,
        owner: Option<String>,
        is_quick: bool,
    ) -> Result<Submission, Problem> {
        let _template = match &request.template {
            Some(_) => self.templates.acquire().await.ok(),
            None => None,
        };
        if is_quick {
            return self.convert_here(&request, owner.as_deref());
        }
        let this = Arc::clone(self);
        let converting = tokio::task::spawn_blocking(move || {
            let submission = this.convert_here(&request, owner.as_deref())?;
            this.toolchains_seen.add(&request);
            Ok(submission)
        });
        converting.await.unwrap_or_else(|_| Err(Problem::new(Code::Internal, "internal error")))
    }

    fn convert_here(
        &self,
        request: &ExecuteRequest,
        owner: Option<&str>,
    ) -> Result<Submission, Problem> {
        let sandbox = self.sandboxes.find(request.isolation.as_deref());
        let sandbox = Arc::clone(sandbox.map_err(|reason| invalid("isolation", reason))?);
        let converted = self.request(request, owner, None)?;
        self.network.check(converted.allow().map(|allow| &**allow))?;
        let requirements = sandbox.requirements(&converted).map_err(|error| refusal(&error))?;
        workspace::check(&sandbox, &converted)?;
        let converted = if request.stdin_stream {
            let reader = self.stdin.open(&converted.id().to_string(), owner);
            converted.with_stdin(Stdin::from_reader(reader))
        } else {
            converted
        };
        let stored_request = serde_json::to_string(request)
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        Ok(Submission {
            sandbox,
            request: converted,
            requirements,
            stored_request,
            labels: request.labels.clone(),
            callback: None,
            idempotency: None,
            is_toolchain_seen: false,
        })
    }

    fn request(
        &self,
        request: &ExecuteRequest,
        owner: Option<&str>,
        id: Option<ExecutionId>,
    ) -> Result<Request, Problem> {
        let environments = directory_of(&self.environments, owner);
        Ok(convert(request, owner, id, self.caches)?.with_environments(environments))
    }
}

impl RequestDecoder for Requests {
    fn decode(
        &self,
        id: ExecutionId,
        owner: Option<&str>,
        stored: Value,
    ) -> Result<DecodedRequest, String> {
        let request: ExecuteRequest =
            serde_json::from_value(stored).map_err(|error| error.to_string())?;
        if request.stdin_stream {
            return Err("its standard input was sent to a server that has stopped".to_owned());
        }
        let sandbox = Arc::clone(self.sandboxes.find(request.isolation.as_deref())?);
        let request = self.request(&request, owner, Some(id)).map_err(|problem| problem.detail)?;
        let requirements =
            sandbox.requirements(&request).map_err(|error| refusal(&error).detail)?;
        Ok(DecodedRequest { sandbox, request, requirements })
    }
}
