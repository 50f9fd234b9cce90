//! Authentication. Every path except a few public ones requires a caller; a handler that forgets the check
//! finds no caller and fails. Authorization is defined in `tenancy`.

mod credential;
mod extract;
mod keys;
mod ticket;
mod token;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri};
use engine::port::Clock;
use module::Code;
use module::envelope::ErrorBody;
use tenancy::{Caller, Credential, Denial, KeyError, KeyStore};
use tracing::error;

use self::credential::RequestCredential;
use self::keys::KeyCache;
use crate::response::ApiError;
use crate::state::Gateway;

pub(crate) use extract::AuthenticatedCaller;
pub(crate) use ticket::{TicketScope, Tickets};
pub use token::{Algorithm, TokenVerifier};

/// Paths without authentication: health and API description.
const PUBLIC: [&str; 5] = ["/", "/healthz", "/readyz", "/openapi.json", "/docs"];

/// Authentication methods of a server.
#[derive(Debug)]
pub struct Auth {
    required: bool,
    keys: Option<KeyCache>,
    tokens: Option<TokenVerifier>,
    clock: Arc<dyn Clock>,
}

impl Auth {
    /// No authentication: every caller is the local user. Many clients always send some key, so unknown
    /// credentials are ignored; keys and tokens in the format of this server must be valid.
    pub fn open(clock: Arc<dyn Clock>) -> Self {
        Self {
            required: false,
            keys: None,
            tokens: None,
            clock,
        }
    }

    #[must_use]
    pub fn require(mut self) -> Self {
        self.required = true;
        self
    }

    #[must_use]
    pub fn with_keys(mut self, keys: Arc<dyn KeyStore>) -> Self {
        self.keys = Some(KeyCache::new(keys));
        self
    }

    #[must_use]
    pub fn with_tokens(mut self, tokens: TokenVerifier) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Takes over the key sets of the previous configuration; they stay valid until they have been fetched
    /// again.
    pub(crate) fn inherit_caches(&self, other: &Self) {
        if let (Some(tokens), Some(old)) = (&self.tokens, &other.tokens) {
            tokens.inherit(old);
        }
    }

    /// Whether credentials are required.
    pub fn is_required(&self) -> bool {
        self.required
    }

    async fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let open = !self.required;
        let caller = match RequestCredential::of(headers) {
            RequestCredential::None if !open => {
                return Err(unknown("this server requires credentials"));
            }
            RequestCredential::None => return Ok(Caller::local()),
            RequestCredential::Unreadable if open => return Ok(Caller::local()),
            RequestCredential::Token(_) if open && self.tokens.is_none() => return Ok(Caller::local()),
            RequestCredential::Unreadable => None,
            RequestCredential::Key(secret) => match &self.keys {
                Some(keys) => {
                    let admitted = keys.admit(&secret, self.clock.now_ms()).await;
                    admitted.map_err(|cause| unreadable(&cause))?
                }
                None => None,
            },
            RequestCredential::Token(token) => match &self.tokens {
                Some(tokens) => tokens.admit(&token, self.clock.now_ms()).await,
                None => None,
            },
        };
        // The reason is not exposed.
        caller.ok_or_else(|| unknown("these credentials are not valid"))
    }

    /// Whether the credentials of this caller are still accepted; an error if that cannot be determined.
    pub(crate) async fn revalidate(&self, caller: &Caller) -> Result<bool, ApiError> {
        let now_ms = self.clock.now_ms();
        Ok(match (&caller.proof, &self.keys) {
            (Credential::None, _) => !self.required,
            (Credential::Token { expires_at_ms }, _) => self.tokens.is_some() && now_ms < *expires_at_ms,
            (Credential::Key(id), Some(keys)) => {
                let stands = keys.is_valid(id, now_ms).await;
                stands.map_err(|cause| unreadable(&cause))?
            }
            (Credential::Key(_), None) => false,
        })
    }
}

fn unreadable(cause: &KeyError) -> ApiError {
    error!(%cause, "key store read failed");
    ApiError::new(ErrorBody::new(Code::E4000, "the keys cannot be read"))
}

/// Authenticates the request and applies the rate limit of the caller.
pub(crate) async fn identify(gateway: &Gateway, request: &mut Request) -> Result<(), ApiError> {
    if PUBLIC.contains(&request.uri().path()) {
        return Ok(());
    }
    let caller = find(gateway, request.headers(), request.uri()).await?;
    request
        .extensions_mut()
        .insert(AuthenticatedCaller(Arc::new(caller)));
    Ok(())
}

async fn find(gateway: &Gateway, headers: &HeaderMap, uri: &Uri) -> Result<Caller, ApiError> {
    let auth = gateway.auth();
    let caller = match gateway.tickets.redeem(uri, auth.clock.now_ms()) {
        Some(Ok(caller)) => {
            if !auth.revalidate(&caller).await? {
                return Err(unknown("the credentials of this ticket are no longer valid"));
            }
            caller
        }
        Some(Err(())) => return Err(unknown("this ticket is invalid or expired")),
        None => auth.caller(headers).await?,
    };
    gateway.limiter.check_rate(&caller)?;
    Ok(caller)
}

fn unknown(message: &str) -> ApiError {
    let body = ErrorBody::new(Code::E4007, message)
        .suggest("send a key as `Authorization: Bearer cogn_...`; `cogn keys create` makes one");
    ApiError::with_status(body, StatusCode::UNAUTHORIZED)
}

impl From<Denial> for ApiError {
    fn from(denial: Denial) -> Self {
        let body = ErrorBody::new(Code::E4007, denial.to_string());
        Self::new(match &denial {
            Denial::Scope(scope) => body.detail("scope", scope.as_str()),
            Denial::Module(module) => body.detail("module", module.as_str()),
        })
    }
}
