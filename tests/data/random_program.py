"""What the random testbeds share: values drawn at random, and the answers to requests of the testbed protocol."""

import argparse
import json
import sys


class Refused(Exception):
    """A request that a testbed cannot run."""


def neat(value, digits=3):
    return float(f"{value:.{digits}g}")


def spread(draw, low, high):
    """A value between, evenly distributed in its logarithm."""
    return neat(low * (high / low) ** draw.random())


def answer_requests(made, description):
    """Answer requests by what `made` makes of the seed that the program was given."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0, help="the number of what is drawn")
    testbed = made(parser.parse_args().seed)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request["id"], "ok": True}
        try:
            if request["op"] == "describe":
                answer["testbed"] = testbed.describe()
            else:
                answer.update(testbed.run(request))
        except Refused as refusal:
            answer = {"id": request["id"], "ok": False, "error": {"code": "bad-request", "message": str(refusal)}}
        print(json.dumps(answer), flush=True)
