//! Several readers of one run, and what changes while a viewer shows it.

use super::DOTTED;
use super::made::{self, DOTS, Reply, Server, serve};
use super::page::in_a_browser;
use serde_json::{Value, json};

fn words(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

fn sign(server: &Server, more: &Value) -> Reply {
    let mut body = json!({"reviewer": "anna", "slide": DOTTED});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post("api/sign", &body.to_string())
}

/// Saves a square with this side, in place of regions of this time.
fn draw(server: &Server, who: &str, side: f64, seen: &Value) -> Reply {
    let ring = [[0.0, 0.0], [side, 0.0], [side, side], [0.0, side]];
    let region = json!({"name": "front", "class": "", "exclude": false, "ring": ring});
    let body = json!({"reviewer": who, "slide": DOTTED, "regions": [region], "seen": seen});
    server.post("api/regions", &body.to_string())
}

fn desk(server: &Server, who: &str) -> Value {
    server.get(&format!("api/desk/{DOTTED}?reviewer={who}")).json()
}

/// A signature would cover a result that nobody saw: detection may run again while the viewer is open.
#[test]
fn a_run_that_changed_under_the_viewer_is_neither_shown_nor_reviewed_nor_signed() {
    let made = made::dotted();
    let server = serve(&[&made.run]);
    assert_eq!(server.review("anna", DOTTED, DOTS[0], "\"figure\"", false).status, 200);
    // The same results again are what was shown.
    made.count_dots("dots.png", 3, "00");
    assert_eq!(server.get(&format!("api/slide/{DOTTED}")).status, 200);
    assert_eq!(server.review("anna", DOTTED, DOTS[1], "\"figure\"", false).status, 200);
    let log = made.run.join("reviews/anna.jsonl");
    let before = std::fs::read_to_string(&log).unwrap();
    made.count_dots("dots.png", 2, "00");
    let hotspot = json!({"reviewer": "anna", "slide": DOTTED, "preset": "own", "shape": "square",
        "fields": 1, "field_mm2": 1.0, "apart": false, "centres_px": [[9.0, 9.0]]});
    let undo = json!({"reviewer": "anna", "slide": DOTTED}).to_string();
    for (what, answer) in [
        ("slide", server.get(&format!("api/slide/{DOTTED}"))),
        ("desk", server.get(&format!("api/desk/{DOTTED}"))),
        ("review", server.review("anna", DOTTED, DOTS[0], "\"mimicker\"", false)),
        ("undo", server.post("api/undo", &undo)),
        ("hotspot", server.post("api/hotspot", &hotspot.to_string())),
        ("regions", draw(&server, "anna", 500.0, &Value::Null)),
        (
            "keep",
            server.post("api/keep", &json!({"slide": DOTTED, "point": "0.5,0.5"}).to_string()),
        ),
        ("sign", sign(&server, &json!({}))),
    ] {
        let why = "dots: the run has changed since it was opened: start the viewer again";
        assert!(answer.status == 409 && words(&answer).contains(why), "{what}: {}", words(&answer));
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap(), before);
    assert!(!made.run.join("reviews/signed.log").exists());
    drop(server);
    let server = serve(&[&made.run]);
    assert_eq!(sign(&server, &json!({})).status, 200);
}

/// Nobody can have seen a slide whose file is missing; blinded, its note holds no count either.
#[test]
fn a_slide_that_cannot_be_opened_is_not_signed() {
    let made = made::dotted();
    let away = made.folder.path().join("away.png");
    std::fs::rename(made.slide("dots.png"), &away).unwrap();
    let server = serve(&[&made.run]);
    let refused = sign(&server, &json!({}));
    let why = "`dots` of this case cannot be opened (its file is not at";
    assert!(refused.status == 422 && words(&refused).contains(why), "{}", words(&refused));
    assert!(!made.run.join("reviews/signed.log").exists());
    drop(server);
    let server = serve(&[&made.run, "--blinded".as_ref()]);
    let line = server.get("api/index").json()["slides"][DOTTED].clone();
    assert!(!line.to_string().contains("figures,"), "{line}");
    assert!(line["unopened"].as_str().unwrap().starts_with("its file is not at"), "{line}");
    drop(server);
    std::fs::rename(&away, made.slide("dots.png")).unwrap();
    let server = serve(&[&made.run]);
    assert_eq!(sign(&server, &json!({})).status, 200);
    // A case is opened again whether or not its slides are there.
    std::fs::rename(made.slide("dots.png"), &away).unwrap();
    drop(server);
    let server = serve(&[&made.run]);
    assert_eq!(sign(&server, &json!({"reopen": "the slide is lost"})).status, 200);
}

/// The page sends all regions of a slide: one that did not see the last ones would delete them.
#[test]
fn regions_replace_only_those_that_were_seen() {
    let made = made::dotted();
    let server = serve(&[&made.run]);
    let first = draw(&server, "bert", 500.0, &Value::Null).json();
    let file = made.run.join("reviews/regions/dots.geojson");
    let of_bert = std::fs::read_to_string(&file).unwrap();
    // A window that was opened before; the same of bert's own second window.
    for who in ["anna", "bert"] {
        let refused = draw(&server, who, 600.0, &Value::Null);
        let why = "bert changed the regions of this slide since they were shown here";
        assert!(refused.status == 409 && words(&refused).contains(why), "{}", words(&refused));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), of_bert);
    let mut seen = first["drawn_by"]["time"].clone();
    for side in [600.0, 700.0, 800.0, 900.0] {
        let now = draw(&server, "anna", side, &seen).json()["drawn_by"]["time"].clone();
        assert_eq!(draw(&server, "anna", 10.0, &seen).status, 409, "{seen} and {now}");
        seen = now;
    }
    assert_eq!(desk(&server, "anna")["drawn"][0]["ring"][2], json!([900.0, 900.0]));
}

/// What was signed is frozen whatever weights search the slide again.
#[test]
fn a_signed_case_stays_frozen_under_other_weights() {
    let made = made::dotted();
    let server = serve(&[&made.run]);
    assert_eq!(sign(&server, &json!({})).status, 200);
    assert_eq!(desk(&server, "anna")["other_weights"], false);
    drop(server);
    made.count_dots("dots.png", 3, "22");
    let server = serve(&[&made.run]);
    let now = desk(&server, "anna");
    assert_eq!((&now["frozen"], &now["other_weights"]), (&json!(true), &json!(true)), "{now}");
    assert!(now["changed"].to_string().contains("counts.json"), "{now}");
    let refused = server.review("anna", DOTTED, DOTS[0], "\"figure\"", false);
    assert!(refused.status == 409 && words(&refused).contains("open the case again"));
    assert_eq!(sign(&server, &json!({})).json()["slides"], json!([]), "signed already");
    assert_eq!(sign(&server, &json!({"reopen": "other weights"})).status, 200);
    assert_eq!(server.review("anna", DOTTED, DOTS[0], "\"figure\"", false).status, 200);
    assert_eq!(sign(&server, &json!({})).status, 200);
    let now = desk(&server, "anna");
    let all = now["signatures"].as_array().unwrap().iter();
    let versions: Vec<_> = all.map(|s| (s["version"].as_u64(), s["signed"].as_bool())).collect();
    assert_eq!(versions, [(Some(1), Some(true)), (Some(1), Some(false)), (Some(2), Some(true))]);
    assert_eq!((&now["other_weights"], &now["changed"]), (&json!(false), &json!([])));
}

/// Regions and reasons are words of others, too; regions that are not shown are not replaced.
#[test]
fn a_blinded_desk_has_only_the_reviewers_own_words() {
    let made = made::dotted();
    let server = serve(&[&made.run]);
    draw(&server, "bert", 500.0, &Value::Null).json();
    assert_eq!(sign(&server, &json!({})).status, 200);
    assert_eq!(sign(&server, &json!({"reopen": "40 figures at the edge"})).status, 200);
    assert!(desk(&server, "anna").to_string().contains("40 figures at the edge"));
    drop(server);
    let server = serve(&[&made.run, "--blinded".as_ref()]);
    let unnamed = server.get(&format!("api/desk/{DOTTED}")).json();
    for shown in [desk(&server, "anna"), unnamed] {
        assert_eq!((&shown["drawn"], &shown["drawn_by"]), (&json!([]), &Value::Null), "{shown}");
        assert_eq!((&shown["mm2"], &shown["all_mm2"]), (&json!([]), &Value::Null), "{shown}");
        for word in ["bert", "front", "40 figures", "reason", ".jsonl"] {
            assert!(!shown.to_string().contains(word), "{word}: {shown}");
        }
        assert_eq!(shown["signatures"].as_array().unwrap().len(), 2, "{shown}");
    }
    assert_eq!(desk(&server, "bert")["drawn"][0]["name"], "front");
    let file = made.run.join("reviews/regions/dots.geojson");
    let of_bert = std::fs::read_to_string(&file).unwrap();
    let refused = draw(&server, "anna", 600.0, &Value::Null);
    let why = "another reviewer drew regions on this slide";
    assert!(refused.status == 409 && words(&refused).contains(why), "{}", words(&refused));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), of_bert);
    drop(server);
    let own = made.folder.path().join("own");
    let server = serve(&[&made.run, "--blinded".as_ref(), "--reviews".as_ref(), &own]);
    assert_eq!(draw(&server, "anna", 600.0, &Value::Null).status, 200);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), of_bert);
}

/// Damage in one reviewer's log is named; the slide can still be looked at by everybody.
#[test]
fn a_damaged_log_of_one_reviewer_does_not_hide_a_signed_slide() {
    let made = made::dotted();
    let server = serve(&[&made.run]);
    for who in ["anna", "bert"] {
        for at in &DOTS[..2] {
            assert_eq!(server.review(who, DOTTED, *at, "\"figure\"", false).status, 200);
        }
    }
    assert_eq!(sign(&server, &json!({})).status, 200);
    drop(server);
    let server = serve(&[&made.run]);
    for who in ["bert", "anna"] {
        let log = made.run.join(format!("reviews/{who}.jsonl"));
        let sound = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&log, sound.replacen("figure", "mimicker", 1)).unwrap();
        let now = desk(&server, "cleo");
        assert_eq!((&now["frozen"], &now["changed"]), (&json!(true), &json!([])), "{now}");
        let note = now["notes"][0].as_str().unwrap();
        assert!(note.contains(&format!("{who}.jsonl: line 2: ")), "{note}");
        assert_ne!(server.review("cleo", DOTTED, DOTS[2], "\"figure\"", false).status, 200);
        std::fs::write(&log, sound).unwrap();
    }
    assert_eq!(desk(&server, "cleo")["notes"], json!([]));
}

#[test]
fn late_answers_and_two_reviewers_in_a_real_browser() {
    let made = made::made();
    // Between the two others in the list, and without its file.
    std::fs::copy(made.slide("dots.png"), made.slide("doze.png")).unwrap();
    made.count_dots("doze.png", 1, "00");
    std::fs::remove_file(made.slide("doze.png")).unwrap();
    let server = serve(&[&made.run]);
    in_a_browser("together.mjs", &server.url, &[], None);
}
