"""A headless Chromium through its WebDriver, with the standard library alone."""

import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

DRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium")


def missing():
    """The name of a program that is not installed here, or None."""
    return None if DRIVER and CHROMIUM else "no browser: install chromium and chromium-driver"


class Browser:
    """One window. Use as a context."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="stowage-browser-")
        log = open(self.folder + "/driver.log", "w+", encoding="utf-8")
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.url = f"http://127.0.0.1:{self.port(log)}"
            arguments = [
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                f"--user-data-dir={self.folder}/profile",
            ]
            self.url += (
                "/session/"
                + self.call(
                    "/session",
                    {
                        "capabilities": {
                            "alwaysMatch": {
                                "browserName": "chrome",
                                "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
                                "goog:loggingPrefs": {"browser": "ALL"},
                            }
                        }
                    },
                )["sessionId"]
            )
        except BaseException:
            self.__exit__()
            raise
        finally:
            log.close()
        return self

    def __exit__(self, *_):
        try:
            if "/session/" in getattr(self, "url", ""):
                self.call("", method="DELETE")
        except OSError:
            pass
        self.driver.terminate()
        self.driver.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def port(self, log):
        for _ in range(300):
            log.seek(0)
            for line in log:
                if "started successfully on port " in line:
                    return int(line.rsplit("port ", 1)[1].rstrip(".\n"))
            if self.driver.poll() is not None:
                break
            time.sleep(0.1)
        log.seek(0)
        raise OSError("chromedriver did not start: " + log.read())

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path,
            data,
            {"Content-Type": "application/json"},
            method=method or ("GET" if body is None else "POST"),
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def devtools(self, command, **parameters):
        return self.call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def show(self, file, width, height, dark=False, phone=False):
        """Opens a file in a window of this size in CSS pixels."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            mobile=phone,
            deviceScaleFactor=2 if phone else 1,
        )
        self.devtools("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.devtools(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call("/url", {"url": pathlib.Path(file).resolve().as_uri()})

    def run(self, script, *arguments):
        return self.call("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, seconds):
        """Runs the script until it returns a value that is true. Returns the value, or None after
        `seconds`."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > end:
                return None
            time.sleep(0.02)
        return value

    def picture(self, scale=1):
        """A screenshot of the whole page as PNG."""
        width, height = self.run(
            "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]"
        )
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])

    def point(self, x, y):
        """Moves the mouse to a place in the window."""
        self.devtools("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def tap(self, x, y):
        self.devtools("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.devtools("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.devtools("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def complaints(self):
        """Lines of the console that are errors or warnings."""
        return [
            entry["message"]
            for entry in self.call("/se/log", {"type": "browser"})
            if entry["level"] in ("SEVERE", "WARNING")
        ]
