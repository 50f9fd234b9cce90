//! The pages under `docs/errors`, embedded, so that `cogn explain` works without a network and always
//! speaks of this very binary. A code without a page does not compile here or fails the test that
//! compares this list with the registries.

/// The markdown of a code's page.
pub(crate) fn page(code: &str) -> Option<&'static str> {
    PAGES
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, text)| *text)
}

macro_rules! pages {
    ($($code:ident)*) => {
        static PAGES: &[(&str, &str)] = &[$((
            stringify!($code),
            include_str!(concat!("../../../docs/errors/", stringify!($code), ".md")),
        )),*];
    };
}

pages! {
    E1000 E1001 E1002 E1003 E1004 E1005 E1006 E1010 E1011 E1012 E1013 E1014 E1015 E1016 E1017 E1018
    E1019 E1020 E2001 E2002 E2003 E2004 E2005 E2006 E2007 E2010 E2011 E3001 E3002 E3003 E3004 E3005
    E3006 E4000 E4001 E4002 E4003 E4004 E4005 E4006 E4007 E4008 E4009 E4010 E4011 E4012 E4013 E4014
    E4015 W1011 W2001 W3001 W4010 W4011 W4013 W4014 M1001 M1002 M1003 M1004 M1005 M1006 M1007 M1008
    M1009 M1010 M1011 M1012 M2001 M2002 M2003 M2004 M2005 M2006 M2007 M2008 M2009 M2010 M2011 M2012 M2013
    M2014 M2015 M2016 M2017 M2018 M3001 M3002 M3003 M3004 M3005 M3006 M3007 M3008 M3009 M3010 M3011
    M4001 M4002 M4003 M4004 M4005 M4006 M4007 M4008 M4009 M4010 M4011 M4012 M4013 M5001 M5002 M5003
    M5004 M5005 M5006 M5007 M5008 M6001 M6002 M6003 M6004 M6005 M6006 M6007 M6008 M6009 M6010 M6011
    M6012 M6013 M7001 M7002 M7003 M7004 M7005 M7006
}
