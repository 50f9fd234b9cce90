//! Who calls. Every path but a few public ones is closed until a caller is known; a handler that forgets
//! to ask finds no caller and fails. What a caller may do is `tenancy`'s to say.

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
use tenancy::{Caller, Denial, KeyError, KeyStore, Credential};
use tracing::error;

use self::credential::Credential;
use self::keys::KeyCache;
use crate::response::ApiError;
use crate::state::Gateway;

pub(crate) use extract::AuthenticatedCaller;
pub(crate) use ticket::{TicketScope, Tickets};
pub use token::{Algorithm, TokenVerifier};

/// What can be asked without credentials: whether the server lives, and what it offers.
const PUBLIC: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/docs"];

/// How callers are known.
#[derive(Debug)]
pub struct Auth {
    required: bool,
    keys: Option<KeyCache>,
    tokens: Option<TokenVerifier>,
    clock: Arc<dyn Clock>,
}

impl Auth {
    /// Nobody has to say who they are; everyone is the one local user. Many clients cannot but show something: what is not
    /// of our making is passed over, and what is must be good.
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

    /// Takes the place of another. What was fetched stays good while it is fetched again.
    pub(crate) fn inherit_caches(&self, other: &Self) {
        if let (Some(tokens), Some(old)) = (&self.tokens, &other.tokens) {
            tokens.inherit(old);
        }
    }

    /// Whether nothing is answered without credentials.
    pub fn is_required(&self) -> bool {
        self.required
    }

    async fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let open = !self.required;
        let caller = match Credential::of(headers) {
            Credential::None if !open => {
                return Err(unknown("this server answers only to those it knows"));
            }
            Credential::None => return Ok(Caller::local()),
            Credential::Unreadable if open => return Ok(Caller::local()),
            Credential::Token(_) if open && self.tokens.is_none() => return Ok(Caller::local()),
            Credential::Unreadable => None,
            Credential::Key(secret) => match &self.keys {
                Some(keys) => {
                    let admitted = keys.admit(&secret, self.clock.now_ms()).await;
                    admitted.map_err(|cause| unreadable(&cause))?
                }
                None => None,
            },
            Credential::Token(token) => match &self.tokens {
                Some(tokens) => tokens.admit(&token, self.clock.now_ms()).await,
                None => None,
            },
        };
        // Which part of it was wrong is nobody's business but the owner's.
        caller.ok_or_else(|| unknown("these credentials are not valid"))
    }

    /// Whether the door would open again for what this caller has shown; fails where that cannot be told.
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
    error!(%cause, "keys cannot be read");
    ApiError::new(ErrorBody::new(Code::E4000, "the keys cannot be read"))
}

/// Lets through who is known, and within the rate that is theirs.
pub(crate) async fn identify(gateway: &Gateway, request: &mut Request) -> Result<(), ApiError> {
    if PUBLIC.contains(&request.uri().path()) {
        return Ok(());
    }
    let caller = find(gateway, request.headers(), request.uri()).await?;
    request.extensions_mut().insert(AuthenticatedCaller(Arc::new(caller)));
    Ok(())
}

async fn find(gateway: &Gateway, headers: &HeaderMap, uri: &Uri) -> Result<Caller, ApiError> {
    let auth = gateway.auth();
    let caller = match gateway.tickets.redeem(uri, auth.clock.now_ms()) {
        Some(Ok(caller)) => {
            if !auth.revalidate(&caller).await? {
                return Err(unknown("the credentials behind this ticket are no longer valid"));
            }
            caller
        }
        Some(Err(())) => return Err(unknown("this ticket is not valid, or no longer")),
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
