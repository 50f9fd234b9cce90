//! Review of a run by a person: approve, reject, or replace the data.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use engine::port::{ReviewDecision, ReviewOutcome};
use module::Code;
use module::envelope::ErrorBody;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenancy::Scope;

use super::runs;
use crate::auth::AuthenticatedCaller;
use crate::endpoint::{Endpoint, any_of_type, one_of};
use crate::extract::PathName;
use crate::limits;
use crate::request::read_json;
use crate::response::ApiError;
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    let body = json!({
        "type": "object",
        "required": ["decision"],
        "properties": {
            "decision": one_of(&["approve", "reject", "edit"]),
            "comment": {"type": "string", "maxLength": limits::COMMENT_BYTES_MAX},
            "data": any_of_type("object", "With `edit`: the new data of the answer. It must match the module schema."),
        },
        "additionalProperties": false,
    });
    vec![
        Endpoint::post("/v1/runs/{session_id}/review", "review_run", review)
            .summary("Reviews a run that needs it. The first review is final.")
            .path("session_id", "The id from the first event of the run.")
            .request_body(body)
            .returns(runs::row_schema())
            .error_codes(&[Code::E1000, Code::E1001, Code::E1005, Code::E4006, Code::E4009])
            .error_code_as(StatusCode::CONFLICT, Code::E1001),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewBody {
    decision: ReviewAction,
    comment: Option<String>,
    data: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReviewAction {
    Approve,
    Reject,
    Edit,
}

async fn review(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    PathName(session_id): PathName,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Scope::Review)?;
    let wrong = |message: String| ApiError::new(ErrorBody::new(Code::E1001, message));
    let value = read_json(body, gateway.settings().body_read).await?;
    let body: ReviewBody =
        serde_json::from_value(value).map_err(|error| wrong(format!("the body: {error}")))?;
    if body
        .comment
        .as_ref()
        .is_some_and(|text| text.len() > limits::COMMENT_BYTES_MAX)
    {
        return Err(wrong(format!(
            "the comment exceeds {} bytes",
            limits::COMMENT_BYTES_MAX
        )));
    }
    let row = runs::find(&gateway, &caller, &session_id).await?;
    let decision = match (body.decision, &body.data) {
        (ReviewAction::Approve, None) => ReviewOutcome::Approved,
        (ReviewAction::Reject, None) => ReviewOutcome::Rejected,
        (ReviewAction::Edit, Some(data)) => {
            let module = super::modules::find(&gateway, &caller, row.kind.module().unwrap_or_default())?;
            let last = gateway.engine().last(&caller.tenant, &row).await?;
            let data = data.clone();
            let check = move || engine::review::admit_edit(&module, last.as_ref(), &data);
            gateway.engine().schema_threads().check(check).await?;
            ReviewOutcome::Edited
        }
        (ReviewAction::Edit, None) => return Err(wrong(String::from("an edit requires `data`"))),
        (ReviewAction::Approve | ReviewAction::Reject, Some(_)) => {
            return Err(wrong(String::from(
                "`data` is allowed only with the decision `edit`",
            )));
        }
    };
    let verdict = ReviewDecision {
        decision,
        by: caller.client.clone(),
        comment: body.comment,
        data: body.data.map(|data| Value::Object(data).to_string()),
        at_ms: gateway.engine().clock().now_ms(),
    };
    gateway
        .archive
        .review(&caller.tenant, row.id, &verdict)
        .await
        .map_err(engine::Error::from)?;
    let row = runs::find(&gateway, &caller, &session_id).await?;
    runs::describe(&gateway, &caller, row).await
}
