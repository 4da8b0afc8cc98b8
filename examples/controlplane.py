"""The embedded control plane from start to stop, the way a program would use it.

It starts a control plane in a temporary directory, defines a custom resource, creates an object of it,
watches a simulated rollout, and stops. Every step prints what to type for the same thing with kubectl.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from podium.kube import GVK, Client, load_config
from podium.kube.errors import Invalid
from podium.run.controlplane import Options, configure_logging, started
from telling import step

CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
GREETING = GVK("demo.podium.dev", "v1", "Greeting")

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.demo.podium.dev"},
    "spec": {
        "group": "demo.podium.dev",
        "scope": "Namespaced",
        "names": {"plural": "greetings", "kind": "Greeting", "shortNames": ["hi"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["text"],
                                "properties": {
                                    "text": {"type": "string", "minLength": 1},
                                    "times": {"type": "integer", "default": 1, "maximum": 10},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def greeting(name: str, **spec: Any) -> dict[str, Any]:
    """A Greeting in the default namespace."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": GREETING.api_version, "kind": "Greeting", "metadata": metadata, "spec": spec}


def web(image: str, replicas: int) -> dict[str, Any]:
    """A Deployment whose rollout is worth watching."""
    labels = {"app": "web"}
    containers = [{"name": "web", "image": image}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


async def show_rollout(client: Client, generation: int) -> None:
    """Print each change of the Deployment's status until its new generation is available."""
    watching = client.watch(DEPLOYMENT, "default", fields="metadata.name=web")
    async with aclosing(watching) as events:
        last = ""
        async for event in events:
            if event.type not in ("ADDED", "MODIFIED"):
                continue
            obj = msgspec.json.decode(event.object)
            status, wanted = obj.get("status", {}), obj["spec"]["replicas"]
            line = (
                f"updated {status.get('updatedReplicas', 0)}/{wanted}, "
                f"available {status.get('availableReplicas', 0)}/{wanted}, total {status.get('replicas', 0)}"
            )
            if line != last:
                print(f"    {event.type.lower():8} {line}")
                last = line
            settled = status.get("observedGeneration") == generation and status.get("replicas") == wanted
            if settled and status.get("updatedReplicas") == status.get("availableReplicas") == wanted:
                return


async def demonstrate(client: Client) -> None:
    """The tour itself."""
    step("A custom resource", "kubectl apply -f greetings-crd.yaml")
    await client.create(DEFINITION)
    async with aclosing(
        client.watch(CRD, fields=f"metadata.name={DEFINITION['metadata']['name']}")
    ) as events:
        async for event in events:
            conditions = msgspec.json.decode(event.object).get("status", {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                break
    created = await client.create(greeting("hello", text="Hello, operators!"))
    print(f"    greeting/hello created; the schema filled in times={created['spec']['times']}")
    try:
        await client.create(greeting("shout", text="", times=99))
    except Invalid as error:
        print(f"    a bad one is refused: {error}")

    step("A rollout, with simulated Pods", "kubectl create deployment web --image=web:1 --replicas=3")
    first = await client.create(web("web:1", 3))
    await show_rollout(client, first["metadata"]["generation"])
    step("A new image, rolled out step by step", "kubectl set image deployment/web web=web:2")
    second = await client.apply(web("web:2", 3), field_manager="demo", force=True)
    await show_rollout(client, second["metadata"]["generation"])
    pods = await client.list(GVK("", "v1", "Pod"), "default", labels="app=web")
    print(f"    pods: {', '.join(sorted(pod['metadata']['name'] for pod in pods.items))}")


async def tour() -> None:
    """Start, show, stop."""
    configure_logging(verbose=False)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="podium-demo-") as directory:
        step("Starting a control plane", "podium up")
        async with started(Options(data=Path(directory))) as server:
            print(f"    ready at {server.url} after {time.perf_counter() - begin:.2f} s")
            async with Client(load_config(server.kubeconfig)) as client:
                await asyncio.wait_for(demonstrate(client), 60)
            step("Stopping it", "podium down")
