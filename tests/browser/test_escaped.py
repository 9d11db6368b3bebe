"""In a running, trusted notebook what a learner types is text: no script of theirs runs, nothing is fetched."""

EVIL = '"><img src=/none onerror="hit=1"><script>hit=2</script>&lt;'
CELLS = [
    f"""from traitlets import HasTraits, Unicode
from mhsa import explore
from mhsa.draw.heads import draw_heads
from mhsa.exercises import lesson01 as ex
from mhsa.explore.base import Explorer

EVIL = {EVIL!r}

class State(HasTraits):
    token = Unicode(EVIL)

Explorer(State(), lambda state: draw_heads([state.token, "b"], [[[0.5, 0.5]] * 2]), [])""",
    "explore.real_heads()",
    "explore.one_vs_many(query='<img src=x onerror=hit=3>')",
    "ex.quiz()",
    "def dot_scores(q, k):\n    raise ValueError(EVIL)\n\nprint(EVIL)\nex.DOT_SCORES.check(dot_scores)",
]


def test_nothing_that_is_typed_or_shown_becomes_a_script(lab):
    page = lab.run_cells("escaped", CELLS)
    own, real, story, quiz = page.locator(".mhsa-panel").all()
    own.locator("[data-key~='0,1']").focus()
    assert own.locator(".mhsa-line").inner_text() == f"head 0: {EVIL} (query) reads b (key), weight 0.50"
    assert own.locator(".mhsa-picture text").filter(has_text="onerror").first.text_content() == EVIL

    real.locator("input[type=text]").first.fill(EVIL)
    page.keyboard.press("Enter")
    real.locator(".mhsa-picture svg[aria-label*='< script >']").wait_for()
    quiz.locator("input[type=text]").first.fill(EVIL)
    page.keyboard.press("Enter")
    quiz.get_by_text("Type a number alone").wait_for()
    assert "query='<img src=x onerror=hit=3>' is not there" in story.locator("svg").get_attribute("aria-label")
    assert page.locator(".jp-OutputArea").last.inner_text().count(EVIL) == 2  # printed, and told by the check

    page.wait_for_timeout(300)
    assert page.evaluate("typeof hit") == "undefined"
    made = page.locator(".jp-Notebook").locator("script, img, [onerror]")
    assert made.count() == 0, made.first.evaluate("e => e.outerHTML")
    assert page.problems == []
    page.context.close()
