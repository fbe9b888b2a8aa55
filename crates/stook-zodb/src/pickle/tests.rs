use super::*;
use crate::id::Oid;

fn class(data: &[u8]) -> Result<String, PickleError> {
    let mut name = Vec::new();
    match Walker::default().class(&mut Slice::new(data), &mut name) {
        Ok(()) => Ok(String::from_utf8(name).unwrap()),
        Err(Fault::Pickle(error)) => Err(error),
        Err(Fault::Error(error)) => panic!("{error}"),
    }
}

fn references(data: &[u8]) -> Result<Vec<Reference>, PickleError> {
    let mut found = Vec::new();
    match Walker::default().references(&mut Slice::new(data), &mut |reference| {
        found.push(reference);
    }) {
        Ok(len) => {
            assert_eq!(len, data.len() as u64);
            Ok(found)
        }
        Err(Fault::Pickle(error)) => Err(error),
        Err(Fault::Error(error)) => panic!("{error}"),
    }
}

fn with_state(state: &[u8]) -> Vec<u8> {
    let mut data = b"\x80\x03cm\nC\nq\x00.".to_vec();
    data.extend_from_slice(state);
    data
}

#[test]
fn every_form_of_a_class_has_its_name() {
    let forms: [&[u8]; 6] = [
        b"\x80\x03ca.b\nC\nq\x00.",
        b"\x80\x03ca.b\nC\nq\x00K\x07\x85\x86q\x01.",
        b"(U\x03a.bU\x01CtN\x86.",
        b"(U\x03a.bU\x01Ct.",
        b"((S'a.b'\np0\nS'C'\ntNt.",
        b"\x80\x04\x8c\x03a.b\x8c\x01C\x93\x94.",
    ];
    for form in forms {
        assert_eq!(class(form).unwrap(), "a.b.C", "{form:?}");
    }
    assert_eq!(
        class(b"\x80\x04\x8c\x08OFS.Page\x8c\x01P\x93.").unwrap(),
        "OFS.Page.P"
    );
    assert_eq!(class(b"N.").unwrap(), "");
}

#[test]
fn every_form_of_a_reference_is_known() {
    let one = Reference::Strong(Oid(1));
    let weak = Reference::Weak(Oid(1));
    let forms: [(&[u8], Reference); 11] = [
        (b"C\x08\0\0\0\0\0\0\0\x01Q.", one),
        (b"X\x08\0\0\0\0\0\0\0\0\0\0\x01Q.", one),
        (b"U\x08\0\0\0\0\0\0\0\x01h\x00\x86q\x01Q.", one),
        (b"(U\x08\0\0\0\0\0\0\0\x01cm\nC\ntq\x01Q.", one),
        (b"(S'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01'\ntQ.", one),
        (b"]q\x01(U\x01wU\x08\0\0\0\0\0\0\0\x01\x85eQ.", weak),
        (b"(lU\x01waU\x08\0\0\0\0\0\0\0\x01\x85aQ.", weak),
        (b"]U\x08\0\0\0\0\0\0\0\x01aQ.", weak),
        (
            b"](U\x01nU\x02dbU\x08\0\0\0\0\0\0\0\x01\x86eQ.",
            Reference::Foreign,
        ),
        (
            b"](U\x01mU\x02dbU\x08\0\0\0\0\0\0\0\x01h\x00\x87eQ.",
            Reference::Foreign,
        ),
        (b"K\x01Q.", Reference::Unknown),
    ];
    for (form, expected) in forms {
        assert_eq!(
            references(&with_state(form)).unwrap(),
            [expected],
            "{form:?}"
        );
    }
}

#[test]
fn an_object_that_is_kept_is_found_again() {
    let state = b"(U\x08\0\0\0\0\0\0\0\x07q\x05Qh\x05Qh\x05h\x00\x86Qt.";
    assert_eq!(
        references(&with_state(state)).unwrap(),
        [Reference::Strong(Oid(7)); 3]
    );
}

#[test]
fn what_is_no_pickle_is_refused() {
    let cases: [(&[u8], PickleError); 9] = [
        (b"", PickleError::CutOff),
        (b"N", PickleError::CutOff),
        (b"X\xff\xff\xff\xff.", PickleError::CutOff),
        (
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
            PickleError::CutOff,
        ),
        (b".", PickleError::Underflow),
        (b"(N(b.", PickleError::Underflow),
        (b"\xff.", PickleError::Operation(0xff)),
        (b"h\x09.", PickleError::Memo(9)),
        (b"\x80\x06N.", PickleError::Protocol(6)),
    ];
    for (state, error) in cases {
        assert_eq!(references(&with_state(state)), Err(error), "{state:?}");
    }
}
