//! Proxies that refuse, or are not there.

use turnbuckle_errors::Delivered;
use turnbuckle_faults::RefusingProxy;
use turnbuckle_providers::{Clocks, transport::ReqwestTransport};

use super::{attempt, provider, request};
use crate::server::Server;

#[tokio::test]
async fn a_proxy_that_refuses_is_told_from_a_server_that_does() {
    for (status, cause) in
        [(407, "proxy authorization required"), (403, "unsuccessful"), (502, "unsuccessful")]
    {
        let proxy = RefusingProxy::start(status).await.unwrap();
        let through = ReqwestTransport::builder(&Clocks::default()).proxy(proxy.url());
        let provider = provider("https://api.example.invalid/v1", through, Clocks::default());
        request("transport.proxy", Delivered::No, cause)
            .check(&attempt(&provider, false).await.unwrap_err());
        // The proxy resolves the name; we do not.
        assert_eq!(proxy.targets(), ["CONNECT api.example.invalid:443"]);
    }
}

#[tokio::test]
async fn a_proxy_that_wants_a_password_for_plain_http_is_no_answer_of_the_server() {
    let proxy = RefusingProxy::start(407).await.unwrap();
    let through = ReqwestTransport::builder(&Clocks::default()).proxy(proxy.url());
    let provider = provider("http://api.example.invalid/v1", through, Clocks::default());
    request("transport.proxy", Delivered::No, "the proxy wants a user name and a password")
        .check(&attempt(&provider, false).await.unwrap_err());
    assert_eq!(proxy.targets(), ["POST http://api.example.invalid/v1/chat/completions"]);
}

#[tokio::test]
async fn a_proxy_that_nobody_runs_is_refused_like_any_server_and_its_password_stays_here() {
    let address = Server::closed_port().await;
    let url = format!("http://user:canary-of-the-proxy@{address}");
    let through = ReqwestTransport::builder(&Clocks::default()).proxy(url);
    let provider = provider("https://api.example.invalid/v1", through, Clocks::default());
    // The check looks for the canary too.
    request("transport.refused", Delivered::No, "Connection refused")
        .check(&attempt(&provider, false).await.unwrap_err());
}
