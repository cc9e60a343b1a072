use crate::facts; use crate::upstream::Upstream;
#[derive(Clone, Debug)] pub(crate) struct AccessLog;
impl AccessLog { pub(crate) fn open(_t: &relent_config::AccessLog) -> std::io::Result<AccessLog> { Ok(AccessLog) } pub(crate) fn is_on(&self) -> bool { false } pub(crate) fn write(&self, _c: &facts::Call, _l: &facts::Line, _n: Option<(&Upstream, &str)>) {} pub(crate) fn write_unread(&self, _c: &facts::Call, _l: &facts::Unread) {} }
