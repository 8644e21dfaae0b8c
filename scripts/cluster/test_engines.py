#!/usr/bin/env python3
"""Campaigns on real engines, on this machine: Slurm with its daemons, Ray, and what of Kubernetes needs no cluster.

`make engines` installs what these tests need, and nothing here is skipped: what is not there fails.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import kubernetes_validate
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
AMKC = os.environ["AMKC"]
MODEL = os.path.join(ROOT, "testdata/models/zoo/llama-gqa")
PLAN = (MODEL, "--trials", "12", "--cold", "--bracket", "4")


def trials(campaign):
    """The trials of a campaign: what was asked and what was found, without when and how long."""
    out = []
    with open(os.path.join(campaign, "trials.jsonl"), encoding="utf-8") as file:
        for line in file:
            trial = json.loads(line)
            for key in ("started", "seconds", "previous"):
                del trial[key]
            for key in ("seconds", "signature"):
                del trial["verdict"][key]
            out.append(trial)
    return out


class Engine(unittest.TestCase):
    """A scratch directory with a key and a cache of its own, and amkc in it."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="amkc-engines-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = dict(os.environ, XDG_CONFIG_HOME=self.path("config"), AMKC_CACHE=self.path("cache"), HOME=self.dir,
                        CUDA_VISIBLE_DEVICES="")

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def run_in(self, *args, code=0, **env):
        done = subprocess.run(args, env=dict(self.env, **env), cwd=self.dir, capture_output=True, text=True,
                              timeout=600, check=False)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        return done.stdout

    def search(self, *args, code=0):
        return json.loads(self.run_in(AMKC, "search", *args, "--json", code=code))

    def alone(self):
        """The same campaign, made by one worker after another."""
        campaign = self.path("alone")
        while True:
            planned = self.search("plan", *PLAN, "-o", campaign)["planned"]
            if not planned:
                return trials(campaign)
            for index in range(len(planned)):
                self.search("work", "-o", campaign, "--index", str(index))
            self.search("merge", "-o", campaign)


class SlurmTest(Engine):
    """A cluster of one node: munged, slurmctld and slurmd, in a directory of their own."""

    def setUp(self):
        super().setUp()
        for name in ("state", "spool", "munge"):
            os.mkdir(self.path(name), 0o700)
        with open(self.path("munge/key"), "wb") as file:
            os.chmod(file.name, 0o600)
            file.write(os.urandom(128))
        host = socket.gethostname().split(".")[0]
        sock = self.path("munge/socket")
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=amkc
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={sock}
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={self.path("state")}
SlurmdSpoolDir={self.path("spool")}
SlurmctldPidFile={self.path("slurmctld.pid")}
SlurmdPidFile={self.path("slurmd.pid")}
SlurmctldPort=16817
SlurmdPort=16818
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES State=UP
PartitionName=gpu Nodes=ALL State=UP
""")
        self.env["SLURM_CONF"] = self.path("slurm.conf")
        self.daemon("munged", "--foreground", "--force", f"--key-file={self.path('munge/key')}", f"--socket={sock}",
                    f"--pid-file={self.path('munge/pid')}", f"--log-file={self.path('munge/log')}",
                    f"--seed-file={self.path('munge/seed')}")
        self.wait(lambda: os.path.exists(sock))
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D")
        self.wait(lambda: "idle" in self.quietly("sinfo", "--noheader"))

    def daemon(self, *args):
        process = subprocess.Popen(args, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end():
            process.terminate()
            process.wait(60)
        self.addCleanup(end)

    def quietly(self, *args):
        return subprocess.run(args, env=self.env, capture_output=True, text=True, check=False).stdout

    def wait(self, there):
        for _ in range(600):
            if there():
                return
            time.sleep(0.1)
        self.fail("the cluster does not come up")

    def test_a_campaign_of_killed_and_duplicated_tasks(self):
        campaign = self.path("camp")
        self.search("plan", *PLAN, "-o", campaign)
        self.search("work", "-o", campaign, "--index", "0")
        self.search("merge", "-o", campaign)
        planned = self.search("plan", *PLAN, "-o", campaign)["planned"]
        self.assertEqual(len(planned), 4)
        script = os.path.join(HERE, "search.sbatch")
        jobs = []
        for _ in range(3):
            out = self.run_in("sbatch", "--array=0-3", "--output=/dev/null", script, campaign, "judge", AMKC=AMKC)
            jobs.append(re.search(r"\d+", out)[0])
        self.wait(lambda: self.quietly("squeue", "--noheader", "--states=RUNNING").strip())
        self.run_in("scancel", "--signal=KILL", "--full", jobs[0])
        self.run_in("scancel", jobs[1])
        # The driver takes up the round as it is, while the third array may still be at work on it.
        out = self.run_in(os.path.join(HERE, "slurm.sh"), campaign, *PLAN, AMKC=AMKC, STAGES="judge",
                          JUDGE="--partition=gpu")
        self.assertIn("best, confirmed at positions", out)
        self.assertEqual(trials(campaign), self.alone())
        self.run_in(AMKC, "campaign", "verify", campaign)

    def test_cpu_nodes_build_for_a_gpu_that_is_elsewhere(self):
        campaign = self.path("measured")
        plan = (MODEL, "--trials", "3", "--device", "cuda", "--target", "h100")
        self.search("plan", *plan, "-o", campaign)
        script = os.path.join(HERE, "search.sbatch")
        log = self.path("log")
        self.run_in("sbatch", "--wait", "--array=0-0", "--partition=cpu", f"--output={log}", script, campaign, "build",
                    AMKC=AMKC)
        builds = [name for name in os.listdir(self.path("cache")) if name != "weights"]  # which builds share
        self.assertEqual(len(builds), 1)
        self.assertIn("megakernel.fatbin", os.listdir(self.path("cache", builds[0])))
        again = self.search("work", "-o", campaign, "--index", "0", "--stage", "build")
        self.assertEqual(again["state"], "built")
        # There is no GPU to measure with: no verdict, and so the round is not complete.
        self.search("work", "-o", campaign, "--index", "0", code=2)
        self.assertEqual(self.search("merge", "-o", campaign, code=1)["missing"], [0])


class RayTest(Engine):
    def test_a_campaign(self):
        campaign = self.path("camp")
        out = self.run_in(sys.executable, os.path.join(HERE, "ray_search.py"), "--gpus", "0", campaign, *PLAN,
                          AMKC=AMKC, RAY_USAGE_STATS_ENABLED="0")
        self.assertIn("13 trials are made", out)
        self.assertEqual(trials(campaign), self.alone())


class KubernetesTest(Engine):
    """The manifests against the schema of the API, and the commands of their pods. No cluster runs here."""

    def manifests(self):
        with open(os.path.join(HERE, "kubernetes.yaml"), encoding="utf-8") as file:
            return list(yaml.safe_load_all(file))

    def test_the_schema(self):
        jobs = self.manifests()
        self.assertEqual([job["metadata"]["name"] for job in jobs], ["amkc-build", "amkc-judge"])
        for job in jobs:
            for version in ("1.29", "1.37"):
                kubernetes_validate.validate(job, version, strict=True)
            job["spec"]["completion"] = 9
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(job, "1.37", strict=True)

    def test_the_pods(self):
        judge = self.manifests()[1]["spec"]
        container = judge["template"]["spec"]["containers"][0]
        campaign = self.path("camp")
        while self.search("plan", *PLAN, "-o", campaign)["planned"]:
            for index in range(judge["completions"]):
                words = [word.replace("$(JOB_COMPLETION_INDEX)", str(index)).replace("/shared/campaign", campaign)
                         .replace("/key/", self.path("config/amkc/")) for word in container["command"]]
                self.assertEqual(words[0], "amkc")
                self.run_in(AMKC, *words[1:])
            self.search("merge", "-o", campaign)
        self.assertEqual(trials(campaign), self.alone())


if __name__ == "__main__":
    unittest.main()
