//! Classifies public addresses. All others are refused: the local host, private networks, special-purpose
//! ranges, and IPv6 addresses that embed such an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Addresses of hosts in a private network. Cloud metadata addresses are excluded, and so are addresses of
/// more than one host.
pub(super) fn is_own(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_private() || address.is_loopback(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_loopback(),
    }
}

/// Excludes the blocks of the IPv4 special-purpose registry, and multicast and broadcast addresses.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let blocked = match address.octets() {
        // "This" network, private, loopback, carrier-grade NAT.
        [0 | 10 | 127, ..] | [100, 64..=127, ..] => true,
        // Link-local, which includes cloud metadata; private.
        [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..] => true,
        // Protocol assignments, documentation, the old 6to4 relay, AS112, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [192, 31, 196, _] | [192, 52, 193, _] => true,
        [192, 175, 48, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Cloud metadata in an otherwise public range.
        [168, 63, 129, 16] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !blocked
}

/// Only assigned global unicast, without blocks that are routed elsewhere.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded(address) {
        return is_public_v4(inner);
    }
    let segments = address.segments();
    let blocked = match segments {
        // Teredo, benchmarks, ORCHID and the other protocol assignments.
        [0x2001, 0..=0x01ff, ..] => true,
        // Documentation, in both its blocks.
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => true,
        // 6to4: relays route it to the embedded IPv4 address.
        [0x2002, ..] => true,
        // Direct delegation to AS112.
        [0x2620, 0x004f, 0x8000, ..] => true,
        _ => false,
    };
    // All assigned global unicast is in 2000::/3; loopback, unique local, link-local, site-local, multicast
    // and reserved ranges are outside.
    segments[0] & 0xe000 == 0x2000 && !blocked
}

/// The embedded IPv4 address: mapped, compatible, translated. Translators would connect to it.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let low = || {
        let [high, low] = [g, h].map(u16::to_be_bytes);
        Ipv4Addr::new(high[0], high[1], low[0], low[1])
    };
    match [a, b, c, d, e, f] {
        // ::ffff:a.b.c.d, ::ffff:0:a.b.c.d; ::a.b.c.d is loopback or long out of use: never public.
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] => Some(low()),
        [0, 0, 0, 0, 0, 0] => Some(Ipv4Addr::UNSPECIFIED),
        // NAT64: the well-known prefix, and the one for local use.
        [0x0064, 0xff9b, 0, 0, 0, 0] => Some(low()),
        [0x0064, 0xff9b, 1, ..] => Some(Ipv4Addr::UNSPECIFIED),
        _ => None,
    }
}
