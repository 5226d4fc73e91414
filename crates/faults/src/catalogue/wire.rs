//! How the faults below an exchange are made: framing, compression, TLS and
//! HTTP/2.

use super::DEFAULT_EVENT;
use crate::behaviour::{Behaviour, Gzip, HangUp, How, Http2Code, Insert, Point, Tls};

fn cut_midway(how: How) -> Behaviour {
    Behaviour::whole().cut(Point::AfterEvent(DEFAULT_EVENT), how)
}

fn cut_before_status(how: How) -> Behaviour {
    Behaviour::whole().cut(Point::BeforeStatus, how)
}

pub(super) fn fin_inside_chunk() -> Behaviour {
    Behaviour::whole().cut(Point::InsideEvent(DEFAULT_EVENT), How::Fin)
}

pub(super) fn bad_chunk() -> Behaviour {
    cut_midway(How::BadChunk)
}

pub(super) fn short_body() -> Behaviour {
    cut_midway(How::ShortBody)
}

pub(super) fn redirect() -> Behaviour {
    Behaviour::redirect(307)
}

pub(super) fn close_after_answer() -> Behaviour {
    Behaviour::whole().hang_up(HangUp::AtOnce)
}

pub(super) fn reset_on_reuse() -> Behaviour {
    Behaviour::whole().hang_up(HangUp::OnReuse)
}

pub(super) fn gzip() -> Behaviour {
    Behaviour::whole().gzip(Gzip::Flushed)
}

pub(super) fn gzip_corrupt() -> Behaviour {
    gzip().insert(Point::AfterEvent(DEFAULT_EVENT), Insert::CorruptGzip)
}

pub(super) fn gzip_cut() -> Behaviour {
    cut_midway(How::CleanEnd).gzip(Gzip::Flushed)
}

pub(super) fn gzip_lie() -> Behaviour {
    Behaviour::whole().gzip(Gzip::Lie)
}

pub(super) fn tls_unknown_authority() -> Behaviour {
    Behaviour::handshake(Tls::UnknownAuthority)
}

pub(super) fn tls_wrong_name() -> Behaviour {
    Behaviour::handshake(Tls::WrongName)
}

pub(super) fn tls_expired() -> Behaviour {
    Behaviour::handshake(Tls::Expired)
}

pub(super) fn tls_handshake_cut() -> Behaviour {
    Behaviour::handshake(Tls::HandshakeCut)
}

pub(super) fn tls_close_without_notify() -> Behaviour {
    cut_midway(How::FinWithoutNotify)
}

pub(super) fn http2_reset_before_status() -> Behaviour {
    cut_before_status(How::RstStream(Http2Code::InternalError))
}

pub(super) fn http2_refused_stream() -> Behaviour {
    cut_before_status(How::RstStream(Http2Code::RefusedStream))
}

pub(super) fn http2_reset_in_body() -> Behaviour {
    cut_midway(How::RstStream(Http2Code::InternalError))
}

pub(super) fn http2_goaway_before_status() -> Behaviour {
    cut_before_status(How::GoAway(Http2Code::EnhanceYourCalm))
}

pub(super) fn http2_goaway_in_body() -> Behaviour {
    cut_midway(How::GoAway(Http2Code::InternalError))
}

pub(super) fn http2_goaway_accepted() -> Behaviour {
    cut_midway(How::GoAwayAccepted(Http2Code::InternalError))
}
