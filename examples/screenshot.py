"""Takes a picture of a page in headless Chromium: python examples/screenshot.py report.html docs/report.png"""

import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
)  # fmt: skip


def main(page: str, picture: str, width: str = "1440", height: str = "1180") -> None:
    """The top of the page, ``width`` × ``height`` pixels."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        screen = {"width": int(width), "height": int(height), "deviceScaleFactor": 1, "mobile": int(width) < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        browser.get(Path(page).absolute().as_uri())
        browser.save_screenshot(picture)
        browser.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
