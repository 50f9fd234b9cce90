//! Notifications about changed lists. They carry no content: each host reads the lists again and gets only
//! what it may access.

use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use crate::state::Gateway;

/// Notifies a peer of the older protocols until its session ends.
pub(super) fn notify(gateway: Gateway, peer: Peer<RoleServer>, session_end: CancellationToken) {
    let mut seen = gateway.engine().modules().clone();
    let ended = gateway.ended.clone();
    gateway.clone().sockets.spawn(async move {
        loop {
            tokio::select! {
                modules = gateway.modules_after(&seen) => {
                    seen = modules;
                    let notified = async {
                        peer.notify_tool_list_changed().await?;
                        peer.notify_prompt_list_changed().await?;
                        peer.notify_resource_list_changed().await
                    };
                    if notified.await.is_err() {
                        return;
                    }
                }
                () = session_end.cancelled() => return,
                () = ended.cancelled() => return,
            }
        }
    });
}

/// The supported part of a requested subscription filter.
pub(super) fn is_subscribed(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut supported = requested.clone();
    // Resources change only together with their module, which the list notifications cover.
    supported.resource_subscriptions = None;
    supported
}

/// Notifies a peer of the newer protocols until it unsubscribes.
pub(super) async fn listen(gateway: Gateway, listener: SubscriptionContext) -> Result<(), ErrorData> {
    let mut seen = gateway.engine().modules().clone();
    let sink = listener.sink();
    let wanted = listener.accepted().clone();
    loop {
        tokio::select! {
            modules = gateway.modules_after(&seen) => {
                seen = modules;
                let notified = async {
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
                if notified.await.is_err() {
                    return Ok(());
                }
            }
            () = listener.cancelled() => return Ok(()),
            () = gateway.ended.cancelled() => return Ok(()),
        }
    }
}
