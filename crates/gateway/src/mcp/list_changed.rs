//! Modules come and go while hosts are connected; they are told that their lists are old. What changed is
//! theirs to find out: each sees only what it may.

use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use crate::state::Gateway;

/// Tells a peer of the older protocols, for as long as its session lasts.
pub(super) fn notify(gateway: &Gateway, peer: Peer<RoleServer>, over: CancellationToken) {
    let mut modules = gateway.engine.watch_modules();
    let ended = gateway.ended.clone();
    gateway.sockets.spawn(async move {
        loop {
            tokio::select! {
                changed = modules.changed() => {
                    let told = async {
                        peer.notify_tool_list_changed().await?;
                        peer.notify_prompt_list_changed().await?;
                        peer.notify_resource_list_changed().await
                    };
                    if changed.is_err() || told.await.is_err() {
                        return;
                    }
                }
                () = over.cancelled() => return,
                () = ended.cancelled() => return,
            }
        }
    });
}

/// Of what a peer of the newer protocols wants to hear of, what there is.
pub(super) fn is_subscribed(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut heard = requested.clone();
    // A resource is as old as its module: the lists say when that changes.
    heard.resource_subscriptions = None;
    heard
}

/// Tells such a peer, until it listens no more.
pub(super) async fn listen(gateway: &Gateway, listener: SubscriptionContext) -> Result<(), ErrorData> {
    let mut modules = gateway.engine.watch_modules();
    let sink = listener.sink();
    let wanted = listener.accepted().clone();
    loop {
        tokio::select! {
            changed = modules.changed() => {
                let told = async {
                    if wanted.tools_list_changed == Some(true) {
                        sink.notify_tool_list_changed().await?;
                    }
                    if wanted.prompts_list_changed == Some(true) {
                        sink.notify_prompt_list_changed().await?;
                    }
                    if wanted.resources_list_changed == Some(true) {
                        sink.notify_resource_list_changed().await?;
                    }
                    Ok::<(), rmcp::service::SubscriptionSendError>(())
                };
                if changed.is_err() || told.await.is_err() {
                    return Ok(());
                }
            }
            () = listener.cancelled() => return Ok(()),
            () = gateway.ended.cancelled() => return Ok(()),
        }
    }
}
