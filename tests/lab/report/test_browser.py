"""The page in headless Chromium: filters, keyboard, pages of runs, phone, dark mode, downloads. `make browser-test`."""

import csv
import os
import shutil
import time
from dataclasses import replace

import pytest

from gst.lab.bench.load import Loaded
from gst.lab.report import render
from report_rows import many_rows, row, study_rows

HOSTILE = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1">'
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


def missing(reason: str) -> None:
    if os.environ.get("GST_NEED_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    try:
        from selenium import webdriver  # noqa: PLC0415
    except ImportError:
        missing("selenium is not installed: pip install -e .[dev]")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        missing("no Chromium with chromedriver here: make browser-test installs one")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a page of these rows; at the end checks that there were no errors and no requests."""

    def opened(rows=None, width=1280, dark=False):
        screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        (tmp_path / "page.html").write_text(render(Loaded(rows or study_rows(), ["rows.csv"], [])))
        place = (tmp_path / "page.html").as_uri()
        browser.get(place)
        # on a busy machine the driver sometimes returns before the page is loaded
        until(browser, "location.href == arguments[0] && document.readyState == 'complete'", place)
        return browser

    browser.get("about:blank")
    browser.get_log("browser")
    yield opened
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def run(browser, script, *values):
    return browser.execute_script(f"return {script}", *values)


def shown(browser, selector):
    return run(
        browser, "[...document.querySelectorAll(arguments[0])].filter(e => e.getClientRects().length).length", selector
    )


def go(browser, place):
    """Goes to a hash and waits for the page to follow."""
    run(browser, "location.hash = arguments[0]", place)
    until(browser, "document.querySelector('#content').hidden == /^#run-/.test(location.hash)")


def until(browser, script, *values):
    for _ in range(600):
        if run(browser, script, *values):
            return
        time.sleep(0.05)
    raise AssertionError(f"never came true: {script}")


def choose(browser, name, value):
    run(browser, "document.querySelector(`input[name=${arguments[0]}][value='${arguments[1]}']`).click()", name, value)


def press(browser, key):
    from selenium.webdriver import ActionChains, Keys  # noqa: PLC0415

    ActionChains(browser).send_keys(getattr(Keys, key)).perform()


def test_filters(visit):
    page = visit()
    charts = shown(page, "#accuracy figure")
    choose(page, "dataset", "Cora")
    assert shown(page, "#accuracy figure") == charts - 1
    assert shown(page, "figure[data-dataset=Cora]") == 0 < shown(page, "figure[data-dataset=CiteSeer]")
    lines = shown(page, "#accuracy g.line")
    choose(page, "method", "ugs")
    assert shown(page, "#accuracy g.line") == lines - 1
    assert shown(page, "#safe tr[data-method=ugs]") == 0 < shown(page, "#safe tr[data-method=random]")
    choose(page, "measure", "warm_")
    assert shown(page, "#accuracy g.line[data-measure=warm_]") == lines - 1
    assert shown(page, "#accuracy g.line:not([data-measure=warm_])") == 0
    choose(page, "dataset", "CiteSeer")
    choose(page, "dataset", "PubMed")
    assert shown(page, "#accuracy .empty") == 1
    assert run(page, "document.querySelector('#place').textContent").startswith("0 runs")


def test_keyboard_alone(visit):
    page = visit()
    press(page, "TAB")
    assert run(page, "document.activeElement.className") == "skip"
    press(page, "ENTER")
    assert run(page, "location.hash") == "#content"
    run(page, "document.querySelector('#accuracy svg.chart').focus()")
    press(page, "ARROW_RIGHT")
    first = run(page, "document.querySelector('#tip').textContent")
    assert "20 % removed" in first and shown(page, "#tip") == 1
    press(page, "ARROW_RIGHT")
    assert "40 % removed" in run(page, "document.querySelector('#tip').textContent")
    name = run(page, "document.querySelector('#tip b').textContent")
    press(page, "ARROW_DOWN")
    assert run(page, "document.querySelector('#tip b').textContent") != name
    assert "40 % removed" in run(page, "document.querySelector('#tip').textContent")
    press(page, "ESCAPE")
    assert shown(page, "#tip") == 0
    run(page, "document.querySelector('#runtable a').focus()")
    press(page, "ENTER")
    until(page, "!document.querySelector('#page').hidden")
    assert shown(page, "#page h2") == 1 and shown(page, "#content") == 0
    assert run(page, "document.activeElement.id") == "page"
    press(page, "ESCAPE")
    until(page, "!document.querySelector('#content').hidden")
    assert shown(page, "#page") == 0
    assert run(page, "document.querySelector('#accuracy svg.chart').tabIndex") == 0


def test_hover_tells_the_nearest_point(visit):
    from selenium.webdriver import ActionChains  # noqa: PLC0415

    page = visit()
    mark = page.find_element("css selector", "#accuracy g.line[data-method=random] use")
    run(page, "arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(page).move_to_element(mark).perform()
    assert run(page, "document.querySelector('#tip').textContent") == "Random" + mark.get_attribute("data-tip")


def test_page_of_a_run_shows_removed_edges(visit):
    page = visit()
    number = run(page, "Number(Object.keys(JSON.parse(document.querySelector('#rundata').textContent).facts)[0])")
    go(page, f"#run-{number}")
    facts = run(page, "JSON.parse(document.querySelector('#rundata').textContent).facts[arguments[0]]", number)
    assert shown(page, "#page .card") == 6
    assert shown(page, "#page line.edge") - 2 == len(facts["kept"])  # two in the legend
    assert shown(page, "#page line.edge.removed") - 1 == facts["kept"].count("0")
    tips = run(page, "[...document.querySelectorAll('#page .bar[data-tip]')].map(b => b.dataset.tip)")
    assert f"same class: {facts['homophily'][0][0]} edges" in " | ".join(tips)
    assert str(facts["nodes"][0]) in run(page, "document.querySelector('#page').textContent")


def test_list_of_runs_searches_sorts_and_turns_pages(visit):
    page = visit()
    total = len(study_rows())
    assert run(page, "document.querySelector('#place').textContent") == f"{total} runs, page 1 of {-(-total // 25)}"
    run(page, "document.querySelector('#forth').click()")
    assert "page 2 of" in run(page, "document.querySelector('#place').textContent")
    run(page, "[...document.querySelectorAll('#runtable th button')].find(b => b.textContent == 'test').click()")
    cells = "[...document.querySelectorAll('#runtable tbody tr')].map(r => r.cells[6].textContent)"
    found = [float(cell) for cell in run(page, cells) if cell != "–"]
    assert found == sorted(found) and len(found) == 25
    page.find_element("id", "search").send_keys("cora random 0.4")
    assert run(page, "document.querySelector('#place').textContent") == "3 runs, page 1 of 1"


@pytest.mark.parametrize("rows", [None, [row(dataset="x" * 200, method="y" * 90, command="z" * 400)]])
def test_nothing_overflows_at_phone_width(visit, rows):
    page = visit(rows, width=360)
    run(page, "document.querySelectorAll('details').forEach(d => { d.open = true })")
    for place in ("#summary", "#run-0"):
        go(page, place)
        assert run(page, "document.documentElement.scrollWidth") <= 360
    assert run(page, "parseFloat(getComputedStyle(document.body).fontSize)") >= 16


def test_dark_by_preference_and_by_choice(visit):
    light = "(([r, g, b]) => r + g + b)(getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number))"
    page = visit(dark=True)
    assert run(page, light) < 150
    run(page, "document.querySelector('#theme').click()")
    assert run(page, light) > 600
    run(page, "document.querySelector('#theme').click()")
    assert run(page, light) < 150
    run(page, "localStorage.clear()")
    assert run(visit(), light) > 600


def test_downloads(visit, browser, tmp_path):
    page = visit()
    folder = tmp_path / "saved"
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def saved(button, name):
        run(page, "document.querySelector(arguments[0]).click()", button)
        for _ in range(100):
            if (folder / name).is_file():
                return (folder / name).read_text()
            time.sleep(0.1)
        raise AssertionError(f"{name} was not saved: {list(folder.glob('*'))}")

    lines = list(csv.reader(saved("[data-csv=safe-sparsity]", "safe-sparsity.csv").splitlines()))
    assert lines[0][:3] == ["data · backbone", "method", "model"] and {line[2] for line in lines[1:]} == {
        "returned model"
    }
    text = saved("[data-latex=safe-sparsity]", "safe-sparsity.tex")
    assert text.startswith(r"\begin{table}") and r"\bottomrule" in text
    runs = list(csv.DictReader(saved("#allruns", "runs.csv").splitlines()))
    assert len(runs) == len(study_rows()) and {r["dataset"] for r in runs} == {"Cora", "CiteSeer", "PubMed"}
    assert saved("#accuracy [data-svg]", "Cora-GCN.svg").startswith("<svg")


def test_texts_of_rows_never_run(visit):
    texts = ("dataset", "backbone", "method", "reason", "command", "environment", "profile")
    rows = [replace(row(sparsity=s), **dict.fromkeys(texts, HOSTILE)) for s in (0.2, 0.4)]
    page = visit(rows)
    for place in ("#runs", "#run-0", "#run-1"):
        go(page, place)
    assert run(page, "window.hacked") is None and shown(page, "img") == 0
    assert HOSTILE in run(page, "document.querySelector('#page h2').textContent")


def test_five_thousand_runs(visit):
    rows = many_rows(5000)
    page = visit(rows)
    assert run(page, "document.querySelector('#place').textContent") == "5,000 runs, page 1 of 200"
    choose(page, "dataset", "data 0")
    assert "4,444 runs" in run(page, "document.querySelector('#place').textContent")
